"""``activation_bytes``: the size of the tensors that a node makes, in bytes."""

from __future__ import annotations

import math

from nbsurgery.annotate.subject import Subject
from nbsurgery.graph import Tensor

_BITS = {"bool": 8, "complex32": 32, "complex64": 64, "complex128": 128}


def measure(subject: Subject) -> tuple[dict, dict]:
    """Bytes by node id, and the sum over the run (what training would keep, at most).

    Inputs and parameters read are not made by the run; an operation that writes in place makes
    nothing new. The call of a scope carries the sum over its subtree.
    """
    own: dict[str, int] = {}
    for node in subject.walk():
        if node.kind not in ("module", "function", "method") or node.child is not None:
            continue
        if node.glue or node.writes:
            continue
        own[node.id] = sum(size(t) for t in node.outputs)
    whole = subject.roll_up(own)
    return {"activation_bytes": whole}, {"activation_bytes": sum(own.values())}


def size(tensor: Tensor) -> int:
    """Bytes of one tensor."""
    bits = _BITS.get(tensor.dtype)
    if bits is None:
        digits = "".join(c for c in tensor.dtype.split("_")[0] if c.isdigit())
        bits = int(digits) if digits else 8
    return math.prod(tensor.shape) * bits // 8
