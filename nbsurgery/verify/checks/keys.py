"""state_dict: keys kept, renamed, lost and new, and what that does to an old checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..report import Fact, Finding
from ..subject import Subject, counted, listed, regions


def check(subject: Subject) -> Iterator[Fact | Finding]:
    """Keys by the tensor that they mean, not by spelling alone."""
    before = subject.original.state_dict(keep_vars=True)
    after = {}
    for prefix, root in zip(subject.prefixes, subject.built.modules):
        for key, tensor in root.state_dict(keep_vars=True).items():
            after[prefix + key] = tensor
    origin = {key: _origin(subject, tensor) for key, tensor in after.items()}
    plain = {key: key.partition(".")[2] if subject.prefixes != ("",) else key for key in after}
    names = _names(before, subject)

    own = {k for k in after if origin[k] is not None and plain[k] in names[origin[k]]}
    kept = {k for k in own if origin[k] not in subject.built.written}
    renamed = {k: origin[k] for k in after if origin[k] is not None and k not in own}
    copies = subject.copies
    fresh = [
        k
        for k in after
        if k in own - kept or (origin[k] is None and plain[k] in before and k not in copies)
    ]
    kept |= copies
    new = [k for k in after if origin[k] is None and plain[k] not in before]
    held = set(plain.values())
    lost = [k for k in before if k not in held and k not in renamed.values()]
    yield Fact("state_dict keys", f"{len(before):,}", f"{len(after):,}")
    if not renamed and not new and not lost and not fresh:
        yield Finding("ok", f"all {counted(len(before), 'state_dict key')} keep name and weights")
    else:
        parts = [f"{len(kept):,} of {counted(len(before), 'state_dict key')} keep name and weights"]
        if renamed:
            key = next(iter(renamed))
            parts.append(
                f"{len(renamed):,} {'is' if len(renamed) == 1 else 'are'} renamed "
                f"({renamed[key]} → {key})"
            )
        for keys, said, everything in (
            (fresh, "with new weights", after),
            (lost, "lost", before),
            (new, "new", after),
        ):
            if keys:
                parts.append(f"{len(keys):,} {said} ({listed(regions(keys, everything))})")
        yield Finding("info", ", ".join(parts))
    if len(subject.built.modules) == 1:
        yield from _loading(before, after, origin)
    else:
        yield from _stages(subject, before, plain)


def _origin(subject: Subject, tensor) -> str | None:
    return subject.came_from(tensor) if isinstance(tensor, torch.Tensor) else None


def _names(before: dict, subject: Subject) -> dict[str, set[str]]:
    """For the first name of each of the original's tensors, all the keys that mean it."""
    first: dict[int, str] = {}
    for name, tensor in (
        *subject.original.named_parameters(),
        *subject.original.named_buffers(),
    ):
        first.setdefault(id(tensor), name)
    names: dict[str, set[str]] = {name: {name} for name in first.values()}
    for key, tensor in before.items():
        if id(tensor) in first:
            names[first[id(tensor)]].add(key)
    return names


def _loading(before: dict, after: dict, origin: dict) -> Iterator[Finding]:
    """Whether a checkpoint of the original still loads, and where it would do harm."""
    shapes = [
        k for k in after if k in before and tuple(_shape(after[k])) != tuple(_shape(before[k]))
    ]
    # a key that now means another of the original's weights: loading puts the old ones there
    moved = [
        k
        for k in after
        if k in before
        and origin[k] not in (None, k)
        and origin[k] in before
        and before[k] is not before[origin[k]]
    ]
    if moved:
        yield Finding(
            "warning",
            f"{counted(len(moved), 'key')} now {'mean' if len(moved) > 1 else 'means'} other weights "
            f"({moved[0]} was {origin[moved[0]]}): loading an old checkpoint puts the wrong ones there",
        )
    missing = [k for k in after if k not in before]
    unused = [k for k in before if k not in after]
    if shapes:
        k = shapes[0]
        yield Finding(
            "info",
            f"an old checkpoint no longer loads as it is: {k} is {_shape(after[k])}, "
            f"there {_shape(before[k])}",
        )
    elif missing or unused:
        parts = []
        if unused:
            parts.append(
                f"{len(unused)} of its keys {'is' if len(unused) == 1 else 'are'} not used"
            )
        if missing:
            stay = "stays" if len(missing) == 1 else "stay"
            parts.append(f"{counted(len(missing), 'key')} not in it {stay} as made")
        yield Finding("info", f"an old checkpoint loads with strict=False: {', '.join(parts)}")
    elif not moved:
        yield Finding("ok", "an old checkpoint still loads, strictly")


def _stages(subject: Subject, before: dict, plain: dict) -> Iterator[Finding]:
    """For a split: each weight in exactly one part, and the parts together complete."""
    places: dict[str, set[str]] = {}
    for prefix, root in zip(subject.prefixes, subject.built.modules):
        for tensor in root.parameters():
            name = subject.came_from(tensor)
            if name is not None:
                places.setdefault(name, set()).add(prefix[:-1])
    both = [name for name, where in places.items() if len(where) > 1]
    if both:
        yield Finding("warning", f"{counted(len(both), 'weight')} in several parts: {listed(both)}")
    absent = [k for k in before if k not in set(plain.values())]
    if not absent and not both:
        yield Finding("ok", f"the parts' keys are the original's {len(before):,}, each in one part")


def _shape(value) -> tuple:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()
