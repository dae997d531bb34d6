"""The laws of surgery, checked on one recipe: what every step on every model has to keep.

Used by the suite on few examples and by ``python tests/surgery.py`` on many.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nbsurgery import verify
from nbsurgery.emit.statements import emit
from nbsurgery.errors import InternalError, ReplayRefused, SurgeryError
from nbsurgery.operations import OPERATIONS
from nbsurgery.session import Session, fingerprint
from nbsurgery.verify import oracle
from nbsurgery.verify.compare import difference
from tests.session.fresh import Server
from tests.session.zoo import build, names_for

LOUD = False  # set by tests/surgery.py --loud
EMPTY = {"format": "nbsurgery/1", "steps": []}


def opened(name: str) -> Session:
    """A session on a fresh model of the zoo."""
    model, args, kwargs = build(name)
    return Session(model, args, kwargs, namespace=names_for(model))


@functools.cache
def server() -> Server:
    """The one server of this process."""
    return Server()


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


# ------------------------------------------------------------------ what a person would click


def random_step(session: Session, choose: random.Random) -> tuple[str, dict] | None:
    """One offer on one or two places that the picture shows, its form left alone or filled."""
    graph = session.draft.graph
    names = [n.name for n in graph.flat if n.kind != "output"] + [k for k in graph.scopes if k]
    picked = choose.sample(names, min(len(names), choose.choice((1, 1, 2))))
    offer = offered(session, picked, choose)
    if choose.random() < 0.02:
        offer = offered(session, [], choose) or offer
    if offer is None:
        return None
    kind = offer["operation"]
    arguments = dict(offer["arguments"])
    for field in offer["fields"]:
        value = field["default"]
        if field["choices"] and choose.random() < 0.5:
            value = choose.choice(field["choices"])
        if field["type"] == "int":
            value += choose.choice((1, 2, 4))
        if field["type"] == "bool" and choose.random() < 0.3:
            value = True
        if kind == "set":
            value = _other(str(value))
        if value not in (None, "", False):
            arguments[field["name"]] = value
    if kind == "set" and set(arguments) == {"where"}:
        return None  # nothing to turn that leaves the shapes alone
    if kind == "replace" and choose.random() < 0.4:
        arguments["new"] = _alike(session, picked[0]) or arguments["new"]
    return kind, arguments


def offered(session: Session, picked: list[str], choose: random.Random) -> dict | None:
    """One of the offers on a selection: each operation has the same chance, only the drawn one is tried."""
    nodes, found = session.nodes(picked), []
    for operation in OPERATIONS.values():
        try:
            offers = operation.offers(session.draft, nodes)
        except SurgeryError:
            continue
        found.append(choose.sample(offers, len(offers)))
    choose.shuffle(found)
    drawn = (session._fitting(offer) for offers in found for offer in offers)
    return next((offer.to_dict() for offer in drawn if offer is not None), None)


def _alike(session: Session, name: str) -> str | None:
    """The text of a layer of the same class and widths, as a person would type it."""
    node = session.draft.graph.by_name.get(name)
    if node is None or node.kind != "module":
        return None
    old = session.draft.module(node.target)
    return {
        nn.Linear: "nn.Linear(old.in_features, old.out_features)",
        nn.BatchNorm2d: "nn.BatchNorm2d(old.num_features, eps=1e-3)",
        nn.LayerNorm: "nn.LayerNorm(old.normalized_shape, eps=1e-3)",
        nn.Embedding: "nn.Embedding(old.num_embeddings, old.embedding_dim)",
        nn.ReLU: "nn.LeakyReLU(0.2)",
        nn.Dropout: "nn.Dropout(0.3)",
    }.get(type(old))


def _other(text: str) -> str:
    """Another value for a field of `set` that keeps shapes: fractions doubled, flags turned."""
    if text in ("True", "False"):
        return str(text == "False")
    try:
        return str(float(text) * 2) if "." in text or "e-" in text else ""
    except ValueError:
        return ""


# ------------------------------------------------------------------ one recipe


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
        told = f"{name}: {operation} {json.dumps(arguments)} after {_recipe(session)}"
        was = session.code, session.recipe
        try:
            session.do(operation, arguments)
        except SurgeryError as error:
            crashed = isinstance(error, InternalError)
            if LOUD:
                print(f"refused {told}: {error}", flush=True)
            seen[operation, "crashed" if crashed else "refused"] += 1
            seen["reason", f"{operation}: {_kind(error)}"] += 1
            if (session.code, session.recipe) != was:
                wrong.append(f"{told}: refused, and yet the steps have changed")
            if crashed:
                wrong.append(f"{told}: {error}")
            continue
        seen[operation, "applied"] += 1
        wrong += [
            f"{told}: {f.text}\n{session.code}"
            for f in session.report.findings
            if f.severity == "error" or "check of" in f.text
        ]
    if state_of(session.model) != before:
        wrong.append(f"{name}: the person's model has changed after {session.code}")
    if session.recipe and not wrong:
        told = f"{name}: {_recipe(session)}"
        wrong += [
            f"{told}: {text}\n{session.code}"
            for text in (*elsewhere(session, name), *again(session))
        ]
    return wrong


def _recipe(session: Session) -> str:
    return json.dumps([[s.operation, dict(s.arguments)] for s in session.recipe])


def elsewhere(session: Session, name: str) -> list[str]:
    """The code on a fresh model in a process without nbsurgery: the oracle's numbers, and twice as once."""
    draft = session.draft
    if session._state.built is None:
        return []  # the steps cancel
    results = session._results(draft) or ("model",)
    args, kwargs = session._adapted(draft)
    answer = server().run(name, session.code, results, args, kwargs)
    if answer["error"]:
        return [f"in a fresh process: {answer['error']}"]
    wrong = []
    if answer["once"] != answer["twice"]:
        odd = [k for k in {**answer["once"], **answer["twice"]}
               if answer["once"].get(k) != answer["twice"].get(k)]  # fmt: skip
        wrong.append(f"run twice it is another model, first at {odd[0]} ({answer['stopped']})")
    if answer["stopped"] and not answer["stopped"][1]:
        wrong.append(f"run twice it fails: {answer['stopped'][0]}")
    try:
        expected = planned(session)
    except ReplayRefused:
        return wrong
    found = difference(answer["output"], expected, tensors_only=True)
    if not found.close:
        wrong.append(f"in a fresh process the output is not what the oracle gives: {found}")
    return wrong


def planned(session: Session) -> Any:
    """What the edited graph gives, each operation run by itself; a divided model's as one graph."""
    draft = session.draft
    if draft.division is None:
        model = verify.structural_copy(session.build())
        return oracle.evaluate(draft.graph, model, *session._adapted(draft))
    whole = dataclasses.replace(draft, division=None)
    text, made = emit(whole, session.variable), session.build()
    model = verify.structural_copy(session.original)
    if draft.edits or draft.rewires:
        model = verify.execute(text, session.original, namespace=session.namespace).model
    own = model.state_dict()
    with torch.no_grad():  # what the text of the parts draws in another order
        for part in made if isinstance(made, tuple) else (made,):
            for key, tensor in part.state_dict().items():
                if key in own and not torch.equal(own[key], tensor):
                    own[key].copy_(tensor)
    return oracle.evaluate(draft.graph, model, *session._adapted(whole))


def again(session: Session) -> list[str]:
    """Saved and loaded the recipe gives the same code; without it nothing is left."""
    code = session.code
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recipe.json"
        session.save(path)
        lost = session.load(path)
        if lost or session.code != code:
            return [f"loaded from JSON it is {session.code!r}, {lost}"]
    return []


def emptied(session: Session) -> None:
    """Leave the session without steps, for the next recipe."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.json"
        path.write_text(json.dumps(EMPTY))
        session.load(path)


def _kind(error: Exception) -> str:
    """A message without its names and numbers, to count reasons."""
    words = str(error).split()
    return f"{type(error).__name__}: " + " ".join(w for w in words if w.isalpha())[:80]
