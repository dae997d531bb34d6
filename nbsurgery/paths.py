"""How source reaches a module: ``model.layer1[0].conv1``, and what assigning to it looks like."""

from __future__ import annotations

import contextlib
import contextvars
import keyword
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
def renumbered(moved: Mapping[int, list[str]], grown: Iterable[int] = ()) -> Iterator[None]:
    """While containers get new children: behind those, numbers mean other ones, names stay.

    Args:
        moved: The id of a container → the names of all its children in the end; none where no number
            can be used.
        grown: The ids of containers that another class gives new children: numbers stay, and a loop
            over all would meet them in a second run.
    """
    tokens = _moved.set({**_moved.get(), **moved}), _grown.set(_grown.get() | set(grown))
    try:
        yield
    finally:
        _moved.reset(tokens[0])
        _grown.reset(tokens[1])


_NONE: Mapping[int, list[str]] = types.MappingProxyType({})
_moved: contextvars.ContextVar[Mapping[int, list[str]]] = contextvars.ContextVar(
    "moved", default=_NONE
)
_grown: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar(
    "grown", default=frozenset()
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


def loop(
    root: nn.Module, paths: Sequence[str], variable: str, at: int | None = None
) -> tuple[str, str, str, nn.Module] | None:
    """The loop over the items of one list that hold the modules: ``for stage in model.stages[1:]:``.

    Args:
        root: The base model.
        paths: Of the modules, in their order.
        variable: The person's name for the model.
        at: Which part of the paths counts the items; by default the one in which they differ.

    Returns:
        Its head, its variable, the path of a module in an item, and one item; ``None`` where there is no
        such list, or where it gets new items.
    """
    columns = [dict.fromkeys(column) for column in zip(*(p.split(".") for p in paths))]
    several = [i for i, column in enumerate(columns) if len(column) > 1]
    at = several[0] if at is None and several else at
    if len({p.count(".") for p in paths}) > 1 or not at or several not in ([at], []):
        return None
    parts = paths[0].split(".")
    whole, rest = ".".join(parts[:at]), ".".join(parts[at + 1 :])
    try:
        items = root.get_submodule(whole)
    except AttributeError:  # a list that a step makes
        return None
    if (
        id(items) in _grown.get()
        or moved(items)
        or getattr(type(items), "__iter__", None) not in _ITER
    ):
        return None
    numbers, count = [int(n) if n.isdigit() else -1 for n in columns[at]], len(items)
    first, end = numbers[0], numbers[0] + len(numbers)
    if first < 0 or numbers != list(range(first, end)) or end > count:
        return None
    if not all(indexed(items, str(n)) for n in numbers):
        return None
    cut = "" if (first, end) == (0, count) else span(first, end, count)
    if cut and type(items) not in (nn.Sequential, nn.ModuleList):
        return None  # a slice of a subclass would call its own __init__
    name = singular(parts[at - 1])
    if name == parts[at - 1] or parts[at - 1].isdigit() or keyword.iskeyword(name):
        name = "block" if rest else "layer"
    if name in (variable, "layers", "name"):
        name = "part"
    held = [items[i] for i in numbers]
    texts = {spelled(item, rest, name) for item in held}
    head = f"for {name} in {spelled(root, whole, variable)}{cut}:"
    return (head, name, rest, held[0]) if len(texts) == 1 else None


_ITER = (nn.Sequential.__iter__, nn.ModuleList.__iter__)


def each(
    root: nn.Module, paths: Sequence[str], variable: str, name: str = "module"
) -> tuple[list[str], str]:
    """The heads of the loops that go through modules, and what one is called in the innermost.

    Where they are no items of lists, it goes through what they are called: ``for module in (…):``.
    """
    names = ", ".join(spelled(root, p, variable) for p in paths) + "," * (len(paths) == 1)
    return in_lists(root, paths, variable) or ([f"for {name} in ({names}):"], name)


def in_lists(root: nn.Module, paths: Sequence[str], variable: str) -> tuple[list[str], str] | None:
    """The loops over lists that hold just these modules, as `each` gives them; ``None``: there are none."""
    if found := loop(root, paths, variable):
        return [found[0]], spelled(found[3], found[2], found[1])
    lists: dict[str, list[str]] = {}
    for path in paths:
        parts = path.split(".")
        last = max((i for i, part in enumerate(parts) if part.isdigit()), default=0)
        lists.setdefault(".".join(parts[:last]), []).append(path)
    if len(lists) > 1 and "" not in lists and any(len(found) > 1 for found in lists.values()):
        inner = [loop(root, p, variable, w.count(".") + 1) for w, p in lists.items()]
        rests = {(i[2], spelled(i[3], i[2], "")) if i else None for i in inner}
        cuts = {i[0].rpartition("[")[2] if i and i[0].endswith("]:") else "" for i in inner}
        outer, here = each(root, list(lists), variable, "stage")
        item = (
            inner[0][1]
            if inner[0] and not any(f" {inner[0][1]} in" in h for h in outer)
            else "block"
        )
        if (
            None not in rests
            and len(rests) == len(cuts) == 1
            and not any(f" {item} in" in h for h in outer)
        ):
            cut = cuts.pop()
            head = f"for {item} in {here}{'[' + cut if cut else ':'}"
            return [*outer, head], spelled(inner[0][3], inner[0][2], item)
    return None


def outermost_paths(paths: Sequence[str]) -> list[str]:
    """The paths that lie in no other of them, each once."""
    return [p for p in dict.fromkeys(paths) if not any(p.startswith(f"{q}.") for q in paths)]


def span(start: int, stop: int, length: int) -> str:
    """The slice of a container's items: ``[1:]``, ``[:3]``, ``[1:3]``."""
    return f"[{start or ''}:{stop if stop < length else ''}]"


def nested(heads: Sequence[str], body: Sequence[str]) -> list[str]:
    """The statements of `body` inside of loops."""
    lines = [f"{'    ' * i}{head}" for i, head in enumerate(heads)]
    return [*lines, *("    " * len(heads) + line for line in body)]


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


def assigned_everywhere(root: nn.Module, path: str, variable: str, value: str) -> str:
    """The statement that puts `value` in the place of the module at `path`, under all its names."""
    with contextlib.suppress(AttributeError):  # a place that a step makes has no other name
        module = root.get_submodule(path)
        for other, held in root.named_modules(remove_duplicate=False):
            if held is module and other != path:
                value = assignment(root, other, variable, value)
    return assignment(root, path, variable, value)


def _get(here: Any, part: str) -> Any:
    if isinstance(here, nn.Module):
        for store in (here._modules, here._parameters, here._buffers):
            if part in store:
                return store[part]
    return getattr(here, part, None)
