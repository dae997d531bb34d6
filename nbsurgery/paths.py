"""How source reaches a module: ``model.layer1[0].conv1``, and what assigning to it looks like."""

from __future__ import annotations

import contextlib
import contextvars
import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn


def quoted(text: str) -> str:
    """A string literal as a formatter leaves it: in double quotes where that needs no escape."""
    return repr(text) if '"' in text else '"' + repr(text)[1:-1] + '"'


def spelled(root: nn.Module, path: str, variable: str) -> str:
    """The expression for the module, parameter or attribute at `path` below `variable`.

    Example:
        >>> from torchvision.models import resnet18
        >>> spelled(resnet18(), "layer1.0.conv1", "model")
        'model.layer1[0].conv1'
    """
    text, here = variable, root
    for part in path.split(".") if path else ():
        text += _step(here, part, text)
        if text.startswith("\0"):  # a name that only get_submodule can reach: it starts anew
            text = text[1:]
        here = _get(here, part)
    return text


def _step(here: Any, part: str, so_far: str) -> str:
    if indexed(here, part) or (isinstance(here, nn.ParameterList) and part.isdigit()):
        return f"[{part}]"
    if isinstance(here, nn.ParameterDict) and part in here:
        return f"[{quoted(part)}]"
    if isinstance(here, nn.ModuleDict) and part in here._modules and not named(here, part):
        return f"[{quoted(part)}]"
    if part.isidentifier() and not keyword.iskeyword(part):
        return f".{part}"
    return f".get_submodule({quoted(part)})"


def indexed(parent: Any, name: str) -> bool:
    """Whether child `name` is reached by its number, as in ``layer1[0]``."""
    if not (isinstance(parent, (nn.Sequential, nn.ModuleList)) and name.isdigit()):
        return False
    names = list(parent._modules)
    if int(name) >= _moved.get().get(id(parent), len(names)):
        return False
    return name in names and names.index(name) == int(name)


def named(parent: nn.ModuleDict, name: str) -> bool:
    """Whether people reach a child of a class of its own by its name: ``backbone.body.layer1``."""
    plain = type(parent) is nn.ModuleDict or hasattr(type(parent), name)
    return not plain and name.isidentifier() and not keyword.iskeyword(name)


def moved(container: nn.Module) -> bool:
    """Whether the text gives a container new children."""
    return id(container) in _moved.get()


@contextlib.contextmanager
def renumbered(moved: Mapping[int, int]) -> Iterator[None]:
    """While containers get new children: behind those, numbers would mean other ones, names stay.

    Args:
        moved: The id of a container → the first number that cannot be used.
    """
    token = _moved.set({**_moved.get(), **moved})
    try:
        yield
    finally:
        _moved.reset(token)


_moved: contextvars.ContextVar[Mapping[int, int]] = contextvars.ContextVar("moved", default={})


def assignment(root: nn.Module, path: str, variable: str, value: str) -> str:
    """The statement that puts `value` in the place of the module at `path`."""
    parent, _, name = path.rpartition(".")
    if path == "":
        return f"{variable} = {value}"
    owner = root.get_submodule(parent)
    target = spelled(root, path, variable)
    if target.endswith(")"):
        return f"{variable}.set_submodule({quoted(path)}, {value})"
    assert owner._modules.get(name) is not None or not hasattr(owner, name)
    return f"{target} = {value}"


def _get(here: Any, part: str) -> Any:
    if isinstance(here, nn.Module):
        for store in (here._modules, here._parameters, here._buffers):
            if part in store:
                return store[part]
    return getattr(here, part, None)
