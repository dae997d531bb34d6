"""How source reaches a module: ``model.layer1[0].conv1``, and what assigning to it looks like."""

from __future__ import annotations

import contextlib
import contextvars
import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn


# What an item of a container is called where its name is no plain plural.
_ITEMS = {"h": "block", "features": "layer", "blocks": "block", "layers": "layer"}


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
    if indexed(here, part):
        return f"[{list(here._modules).index(part)}]"
    if isinstance(here, nn.ParameterList) and part.isdigit():
        return f"[{part}]"
    if isinstance(here, nn.ParameterDict) and part in here:
        return f"[{quoted(part)}]"
    if isinstance(here, nn.ModuleDict) and part in here._modules and not named(here, part):
        return f"[{quoted(part)}]"
    if part.isidentifier() and not keyword.iskeyword(part):
        return f".{part}"
    return f".get_submodule({quoted(part)})"


def indexed(parent: Any, name: str) -> bool:
    """Whether child `name` is reached by its number, as in ``layer1[0]``, before and after all edits."""
    names = _numbered(parent)
    at = names.index(name) if name in names else len(names)
    known = at < len(names) and _moved.get().get(id(parent), names)[: at + 1] == names[: at + 1]
    return known and (name == str(at) or not name.isidentifier() and not name.isdigit())


def number(parent: Any, name: str) -> int | None:
    """The number by which text that runs after all edits reaches child `name`, where it needs one."""
    names = _numbered(parent)
    if indexed(parent, name):
        return names.index(name)
    final = _moved.get().get(id(parent), ())
    return final.index(name) if names and name in final else None


def _numbered(parent: Any) -> list[str]:
    """The names of the children that ``parent[i]`` hands out, in their order."""
    listed = isinstance(parent, (nn.Sequential, nn.ModuleList))
    plain = listed and type(parent).__getitem__ in _GET
    return list(parent._modules) if plain else []


_GET = (nn.Sequential.__getitem__, nn.ModuleList.__getitem__)


def named(parent: nn.ModuleDict, name: str) -> bool:
    """Whether people reach a child of a class of its own by its name: ``backbone.body.layer1``."""
    plain = type(parent) is nn.ModuleDict or hasattr(type(parent), name)
    return not plain and name.isidentifier() and not keyword.iskeyword(name)


def moved(container: nn.Module) -> bool:
    """Whether the text gives a container new children."""
    return id(container) in _moved.get()


def children(container: nn.Module) -> list[str]:
    """The names of a container's children after all edits."""
    return _moved.get().get(id(container), list(container._modules))


@contextlib.contextmanager
def renumbered(moved: Mapping[int, list[str]]) -> Iterator[None]:
    """While containers get new children: behind those, numbers mean other ones, names stay.

    Args:
        moved: The id of a container → the names of all its children in the end; none where no number
            can be used.
    """
    token = _moved.set({**_moved.get(), **moved})
    try:
        yield
    finally:
        _moved.reset(token)


_moved: contextvars.ContextVar[Mapping[int, list[str]]] = contextvars.ContextVar(
    "moved", default={}
)


def singular(name: str) -> str:
    """What one item of a container of that name is called in a loop."""
    if name in _ITEMS:
        return _ITEMS[name]
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith("s") and not name.endswith("ss") and len(name) > 2:
        return name[:-1]
    return name if len(name) > 2 else "layer"


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
