"""Names in emitted code: reserved words, variables, and where a function or class is imported from."""

from __future__ import annotations

import builtins
import functools
import importlib
import keyword
import math
import random
import re
import sys
import types
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import EmissionError

# Python's words, what the emitted text imports, and the builtins that it calls.
RESERVED = frozenset(keyword.kwlist) | {
    "torch", "nn", "F", "math", "self", "len", "int", "float", "bool", "str", "min", "max", "range",
    "list", "dict", "tuple", "set", "super", "isinstance", "getattr", "setattr", "type", "zip",
    "enumerate", "abs", "round", "sum", "print", "slice", "object", "map", "any", "all",
}  # fmt: skip


def is_name(text: Any) -> bool:
    """Whether the text can be a variable of the emitted code."""
    return isinstance(text, str) and text.isidentifier() and text not in RESERVED and text != "_"


def identifier(text: str, fallback: str = "value") -> str:
    """The nearest legal variable name."""
    text = re.sub(r"\W+", "_", str(text)).strip("_").lower()
    if not text or text[0].isdigit():
        text = f"{fallback}_{text}".rstrip("_")
    return text if is_name(text) else f"{text}_"


@functools.cache
def _public_places() -> dict[int, tuple[str, str, Any]]:
    """Where torch shows each of its functions to the public, by identity."""
    places: dict[int, tuple[str, str, Any]] = {}
    spaces = [
        ("torch", torch),
        ("F", F),
        ("torch.fft", torch.fft),
        ("torch.linalg", torch.linalg),
        ("torch.special", torch.special),
        ("torch.nn.utils.rnn", torch.nn.utils.rnn),
        ("torch.autograd", torch.autograd),
        ("torch.nested", torch.nested),
        ("torch.func", torch.func),
        ("torch.nn.init", nn.init),
        ("math", math),
        ("random", random),
    ]
    for space, module in spaces:
        for name in dir(module):
            if name.startswith("_") and space != "torch":
                continue
            value = getattr(module, name, None)
            if callable(value) and not isinstance(value, types.ModuleType):
                places.setdefault(id(value), (space, name, value))
    for name in dir(torch._C._nn):  # F.gelu is torch._C._nn.gelu itself
        value = getattr(torch._C._nn, name, None)
        if callable(value):
            space = "F" if hasattr(F, name) else "torch._C._nn"
            places.setdefault(id(value), (space, name, value))
    return places


class Imports:
    """The import lines that a text needs, and the names that they bind."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}
        self.bound: set[str] = set()

    def add(self, line: str) -> None:
        self.lines.setdefault(line)

    def torch(self) -> None:
        self.add("import torch")

    def nn(self) -> None:
        self.add("from torch import nn")

    def functional(self) -> None:
        self.add("import torch.nn.functional as F")

    def reference(self, value: Any) -> str:
        """The text that names a function or class, with its import noted.

        Raises:
            EmissionError: It can't be reached by an import.
        """
        name = getattr(value, "__name__", "")
        if getattr(builtins, name, None) is value:
            return name
        place = _public_places().get(id(value))
        if place is not None and place[2] is value:
            return self._place(*place[:2])
        if isinstance(value, torch._ops.OpOverloadPacket):
            space, op = value._qualified_op_name.split("::")
            self.torch()
            if space == "torchvision":
                self.add("import torchvision")
            return f"torch.ops.{space}.{op}"
        home = getattr(value, "__module__", None)
        path = getattr(value, "__qualname__", None) or name
        if isinstance(value, types.BuiltinFunctionType) and name:
            if hasattr(torch, name):
                return self._place("torch", name)
            if hasattr(F, name):
                return self._place("F", name)
        if home == "torch.nn.functional" and getattr(F, path, None) is value:
            return self._place("F", path)
        if isinstance(value, type) and getattr(nn, name, None) is value:
            self.nn()
            return f"nn.{name}"
        if home and path and "<locals>" not in path and _reach(home, path) is not None:
            found = _reach(home, path)
            if found is value or getattr(found, "__wrapped__", None) is value:
                return self._named(home, path, found)
        raise EmissionError(
            f"{path or value!r} ({type(value).__name__} of {home}) can't be imported by name"
        )

    def module_global(self, module: types.ModuleType, name: str) -> str:
        """The text that names a global variable of a module."""
        return self._named(module.__name__, name, getattr(module, name))

    def _place(self, space: str, name: str) -> str:
        if space == "F":
            self.functional()
        elif space in ("math", "random"):
            self.add(f"import {space}")
        else:
            self.torch()
        return f"{space}.{name}"

    def _named(self, home: str, path: str, value: Any) -> str:
        top = path.partition(".")[0]
        if home == "__main__":  # a class of the notebook: the cell that follows sees it by name
            self.bound.add(top)
            return path
        home = _shortest_home(home, path, value)
        self.add(f"from {home} import {top}")
        self.bound.add(top)
        return path


def _reach(module: str, path: str) -> Any:
    """The object at ``module.path``, or ``None``."""
    try:
        value = sys.modules.get(module) or importlib.import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except Exception:  # noqa: BLE001 - whatever an import raises, it means: not importable
        return None
    return value


def _shortest_home(home: str, path: str, value: Any) -> str:
    """The shortest public package that shows the same object under the same name."""
    top = path.partition(".")[0]
    parts = home.split(".")
    for i in range(1, len(parts) + 1):
        package = ".".join(parts[:i])
        shown = vars(sys.modules.get(package, types.ModuleType(""))).get(top)
        # transformers imports lazily and warns; its own submodule is what people name
        if package != "transformers" and shown is not None and shown is _reach(home, top):
            return package
    return home


def import_block(lines: Iterable[str]) -> str:
    """Import lines merged, sorted and grouped as isort does: standard library, then the others."""
    plain: dict[str, None] = {}
    names: dict[str, set[str]] = {}
    for line in lines:
        if match := re.fullmatch(r"from (\S+) import (.+)", line):
            names.setdefault(match[1], set()).update(n.strip() for n in match[2].split(","))
        else:
            plain.setdefault(line)
    groups: dict[bool, list[str]] = {True: [], False: []}

    def group(module: str) -> list[str]:
        return groups[module.partition(".")[0] in sys.stdlib_module_names]

    for line in sorted(plain, key=lambda line: line.split()[1]):
        group(line.split()[1]).append(line)
    for module in sorted(names):
        group(module).append(f"from {module} import {', '.join(sorted(names[module]))}")
    return "\n\n".join("\n".join(lines) for lines in groups.values() if lines)
