"""The laws of surgery, checked on one recipe: what every step on every model has to keep.

Used by the suite on few examples and by ``python tests/surgery.py`` on many.
"""

from __future__ import annotations

import collections
import json
import random

import torch
from torch import nn

from nbsurgery.errors import SurgeryError
from nbsurgery.session import Session, fingerprint

from tests.session.zoo import build


LOUD = False  # set by tests/surgery.py --loud


def state_of(model: nn.Module) -> dict:
    """What must not change of a person's model."""
    return {
        "tensors": {k: (id(v), v._version) for k, v in model.state_dict(keep_vars=True).items()},
        "modes": [m.training for m in model.modules()],
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()],
        "grads": [p.grad is None for p in model.parameters()],
        "structure": fingerprint(model),
        "random": torch.get_rng_state().tolist(),
    }


def random_step(session: Session, choose: random.Random) -> tuple[str, dict] | None:
    """One offer on one or two random places, its form filled at random."""
    graph = session.draft.graph
    names = [n.name for n in graph.flat if n.kind != "output"] + [k for k in graph.scopes if k]
    picked = choose.sample(names, min(len(names), choose.choice((1, 1, 1, 2))))
    offers = session.offers(picked)
    if choose.random() < 0.02:
        offers = session.offers([]) or offers
    if not offers:
        return None
    kinds = sorted({o["operation"] for o in offers})
    kind = choose.choice(kinds)
    offer = choose.choice([o for o in offers if o["operation"] == kind])
    arguments = dict(offer["arguments"])
    for field in offer["fields"]:
        value = field["default"]
        if field["choices"] and field["type"] in ("code", "choice"):
            value = choose.choice(field["choices"])
        if field["type"] == "int" and choose.random() < 0.5:
            value += 1
        if field["type"] == "bool":
            value = value or choose.random() < 0.3
        if offer["operation"] == "set":
            value = _other(str(value))
        if value not in (None, "", False):
            arguments[field["name"]] = value
    if offer["operation"] == "set" and set(arguments) == {"where"}:
        return None  # nothing to turn that leaves the shapes alone
    return offer["operation"], arguments


def _other(text: str) -> str:
    """Another value for a field of `set` that keeps shapes: fractions doubled, flags turned."""
    if text in ("True", "False"):
        return str(text == "False")
    try:
        return str(float(text) * 2) if "." in text or "e-" in text else ""
    except ValueError:
        return ""


def check(
    session: Session, name: str, seen: collections.Counter, choose: random.Random
) -> list[str]:
    """Up to five random steps; returns what is wrong, one sentence each."""
    wrong: list[str] = []
    before = state_of(session.model)
    for _ in range(choose.randint(1, 5)):
        step = random_step(session, choose)
        if step is None:
            continue
        operation, arguments = step
        code = session.code
        told = f"{name}: {operation} {json.dumps(arguments)}"
        try:
            session.do(operation, arguments)
        except SurgeryError as error:
            if LOUD:
                print(f"refused {told}: {error}", flush=True)
            seen[operation, "refused"] += 1
            seen["reason", f"{type(error).__name__}: {_kind(str(error))}"] += 1
            if session.code != code:
                wrong.append(f"{told}: refused, and yet the code has changed")
            continue
        except Exception as error:
            seen[operation, "crashed"] += 1
            wrong.append(f"{told}: {type(error).__name__}: {error}")
            continue
        seen[operation, "applied"] += 1
        wrong += [
            f"{told}: {f.text}\n{session.code}"
            for f in session.report.findings
            if f.severity == "error" or "check of" in f.text
        ]
    if state_of(session.model) != before:
        wrong.append(f"{name}: the person's model has changed after {session.code}")
    recipe = [s.to_json() for s in session.recipe]
    if json.loads(json.dumps(recipe)) != recipe:
        wrong.append(f"{name}: the recipe is not the same after JSON: {recipe}")
    return wrong


def again(name: str, recipe: list[dict]) -> str:
    """The code that a recipe gives on a fresh model."""
    model, args, kwargs = build(name)
    session = Session(model, args, kwargs, namespace={})
    for step in recipe:
        session.do(step["operation"], step["arguments"])
    return session.code


def _kind(message: str) -> str:
    """A message without its names and numbers, to count reasons."""
    words = message.split()
    return " ".join(w for w in words if w.isalpha())[:80]
