"""The messages between page and kernel: every request gets exactly one reply, an error is one too."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from nbsurgery.errors import SurgeryError


def answer(methods: Mapping[str, Callable[..., Any]], message: Any) -> dict | None:
    """Run the method that a request names.

    Args:
        methods: What may be asked for, by name; each is called with the request's ``params``.
        message: ``{"id", "method", "params"}``.

    Returns:
        ``{"id", "ok": True, "result"}`` or ``{"id", "ok": False, "error": {"type", "message"}}``, the
        latter with a ``traceback`` too where the error is not one of ours. ``None`` for what is no
        request at all: nobody waits for a reply to that.
    """
    if not isinstance(message, Mapping) or "id" not in message or "method" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    try:
        if method not in methods:
            raise LookupError(f"no method {method!r}; there are: {', '.join(sorted(methods))}")
        result = methods[method](**params)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the reply
        reply = {"type": type(error).__name__, "message": str(error) or repr(error)}
        if not isinstance(error, SurgeryError):
            reply["traceback"] = traceback.format_exc(limit=-8)
        return {"id": message["id"], "ok": False, "error": reply}
    return {"id": message["id"], "ok": True, "result": {} if result is None else result}
