"""What a printed class takes over of the old module: all that its text reads, by its keys, and no dead weights."""

from __future__ import annotations

import re

from torch import nn

from ..paths import children, indexed, moved, number, quoted, span
from .expressions import Writer

_WRITTEN_OUT = 3  # longer dictionaries of what is taken as it is become a comprehension


class Keeps:
    """The statements of ``__init__`` that take attributes over.

    Attributes:
        lines: The statements of forward; what is put into a dictionary is read from it there.
    """

    def __init__(self, w: Writer, lines: list[str], arg: str, rerun: bool, numbered: bool):
        self.w, self.lines, self.arg, self.rerun = w, lines, arg, rerun
        self.dead = self._dead() if w.copies else []
        self.picked: dict[str, list[str]] = {}
        if w.copies and not numbered:
            self.picked = {name: found for name in w.used if (found := self._picked(name))}
        self.later: list[str] = []

    def take(self, name: str, whole: bool) -> list[str]:
        """The statements for one attribute.

        Args:
            name: The attribute.
            whole: Take it as it is: others read it, too.
        """
        module, arg = self.w.module, self.arg
        if not name.isidentifier():
            return [f"self.add_module({quoted(name)}, {arg}.get_submodule({quoted(name)}))"]
        if name in module._buffers:
            return [_buffer(module, name, "self", arg)]
        self.later = []
        if name in self.picked:
            text = self._picked_items(name)
        else:
            text = f"{arg}.{name}" if whole else self._part(name, f"{arg}.{name}")
        return [f"self.{name} = {text}", *self.later]

    def _dead(self) -> list[str]:
        """Paths of the weights that the text has no use for, of all below the modules that it reads."""
        used = {path for paths in self.w.used.values() for path in paths}
        alive, rest = set(), {}
        for path, weight in self.w.module.named_parameters(remove_duplicate=False):
            parts = path.split(".")
            if any(".".join(parts[:i]) in used for i in range(1, len(parts) + 1)):
                alive.add(id(weight))
            else:
                rest[path] = weight
        return [path for path, weight in rest.items() if id(weight) not in alive]

    # ------------------------------------------------------------------ some of a container's items

    def _picked(self, name: str) -> list[str]:
        """The items of a container that the text reads by number where they are not its first ones.

        They are put into an `nn.ModuleDict` under their names, so that their keys stay and the others
        are not carried along; the text then reads them there.
        """
        w, container = self.w, getattr(self.w.module, name, None)
        if type(container) not in (nn.Sequential, nn.ModuleList):
            return []
        parts = [path.split(".")[1:2] for path in w.used[name]]
        numbers = {number(container, p[0]) if p else None for p in parts}
        if name in w.new or None in numbers or 0 in numbers or not name.isidentifier():
            return []
        every, first, last = children(container), min(numbers), max(numbers)
        whole = f"self.{name}{span(first, last + 1, len(every))}"
        text = "\n".join(self.lines).replace(whole, f"self.{name}.values()")
        text = self._by_key(name, text)
        if f"self.{name}[" in text.replace(f'self.{name}["', ""):
            return []  # a loop over some of them
        self.lines = text.split("\n")
        return [every[i] for i in sorted(numbers)]

    def _by_key(self, name: str, text: str) -> str:
        """A text that reads the items of a container by number, reading them by key."""
        every = children(getattr(self.w.module, name))
        return re.sub(
            rf"\bself\.{name}\[(\d+)\]", lambda m: f"self.{name}[{quoted(every[int(m[1])])}]", text
        )

    def _picked_items(self, name: str) -> str:
        arg, made, picked = self.arg, self._made(name), self.picked[name]
        if self.rerun:  # by path, which the dictionary answers too
            each, last = (
                f'{arg}.get_submodule("{name}.{{}}")',
                f'{arg}.get_submodule(f"{name}.{{i}}")',
            )
        else:
            each, last = f"{arg}.{name}[{{}}]", f"{arg}.{name}[i]"
        olds = {i: each.format(i) for i in picked}
        texts = {i: made.get(i) or self._part(f"{name}.{i}", old) for i, old in olds.items()}
        self.later = [self._by_key(name, line) for line in self.later]
        items = ", ".join(f"{quoted(i)}: {text}" for i, text in texts.items())
        numbers = [int(i) for i in picked if i.isdigit()]
        row = picked == [str(i) for i in range(numbers[0], numbers[-1] + 1)] if numbers else False
        if texts == olds and len(picked) > 2 and row:
            items = f"str(i): {last} for i in range({numbers[0]}, {numbers[-1] + 1})"
        return f"nn.ModuleDict({{{items}}})"

    def _made(self, path: str) -> dict[str, str]:
        """The items of a list that the edit makes anew, by their name."""
        before = f"{path}."
        return {k[len(before) :]: v for k, v in self.w.new.items() if k.startswith(before)}

    # ------------------------------------------------------------------ parts of modules

    def _part(self, path: str, old: str) -> str:
        """What the text needs of the module at a path, which `old` reaches.

        Of what it reads only in pieces the containers are made anew, with just those pieces.
        """
        w, module = self.w, self.w.module
        for name in path.split("."):
            module = getattr(module, name, None)
        read = w.reads(path)
        if not w.copies or not isinstance(module, nn.Module) or not read or path in w.new:
            return old
        plain = type(module) in (nn.Sequential, nn.ModuleList)
        if plain and moved(module):
            return self._first(path, module, old, read)
        if plain and all(name.isdigit() for name in read):
            return self._items(path, module, old, sorted(map(int, read)))
        if not self._holds_dead(path):
            return old
        if any(key.startswith(f"{path}.") for key in w.new):
            return old  # the edit makes something in it
        return self._pieces(path, module, old, read) or old

    def _holds_dead(self, path: str) -> bool:
        return any(weight.startswith(f"{path}.") for weight in self.dead)

    def _first(self, path: str, module: nn.Module, old: str, read: set[str]) -> str:
        """A container that got new children, up to the last one that is read."""
        numbers = [number(module, name) for name in read]
        count = len(children(module)) if None in numbers else max(numbers) + 1
        dead = "." not in path or self._holds_dead(path)
        return f"{old}[:{count}]" if dead and count < len(children(module)) else old

    def _items(self, path: str, module: nn.Module, old: str, read: list[int]) -> str:
        """The items of a list up to the last one that is read.

        They keep their numbers, and with them the keys of their weights.
        """
        made, w = {int(i): text for i, text in self._made(path).items()}, self.w
        if not made and not all(indexed(module, str(i)) for i in read):
            return old
        texts = {i: self._part(f"{path}.{i}", f"{old}[{i}]") for i in read if i not in made}
        made |= {i: text for i, text in texts.items() if text != f"{old}[{i}]"}
        first, stop, length = read[0], read[-1], len(module)
        dead = "." not in path or self._holds_dead(path)
        if not made and (first == 0 or not dead):
            return f"{old}{span(0, stop + 1, length)}" if dead and stop + 1 < length else old
        empty = ["nn.Identity()"] * first
        items = empty if first < 3 else [f"*(nn.Identity() for _ in range({first}))"]
        at = first
        for i in sorted(made):
            if i > at:
                items.append(f"*{old}{span(at, i, length)}")
            items.append(made[i])
            at = i + 1
        if at <= stop:
            items.append(f"*{old}{span(at, stop + 1, length)}")
        w.imports.nn()
        return f"nn.ModuleList([{', '.join(items)}])"

    def _pieces(self, path: str, module: nn.Module, old: str, read: set[str]) -> str | None:
        """A container of the children that are read; other attributes are set on it afterwards.

        ``None`` where no container can stand for the module.
        """
        w = self.w
        names = [name for name in module._modules if name in read]
        values = {name: getattr(module, name, self) for name in sorted(read.difference(names))}
        if any(value is self or callable(value) for value in values.values()):
            return None
        if isinstance(module, (nn.ParameterList, nn.ParameterDict)):
            return None
        numbered = isinstance(module, (nn.Sequential, nn.ModuleList))
        numbered = numbered and all(n.isdigit() and indexed(module, n) for n in names)
        if not numbered and not all(name.isidentifier() for name in names):
            return None
        where = w.inside(path)
        for name in values:
            buffer = name in module._buffers
            self.later.append(
                _buffer(module, name, where, old) if buffer else f"{where}.{name} = {old}.{name}"
            )
        dotted = {name: f"{old}[{name}]" if numbered else f"{old}.{name}" for name in names}
        w.imports.nn()
        if any(hasattr(nn.ModuleDict, name) for name in names):  # a dict's own methods: `keys`
            for name in names:
                at = len(self.later)
                text = self._part(f"{path}.{name}", dotted[name])
                self.later.insert(at, f"{where}.{name} = {text}")
            return "nn.Module()"
        texts = {name: self._part(f"{path}.{name}", dotted[name]) for name in names}
        if numbered:
            every = [texts.get(str(i), "nn.Identity()") for i in range(int(names[-1]) + 1)]
            return f"nn.ModuleList([{', '.join(every)}])"
        if not names:
            return "nn.Module()"
        if texts == dotted and len(texts) > _WRITTEN_OUT:
            each = ", ".join(map(quoted, names))
            return f"nn.ModuleDict({{name: getattr({old}, name) for name in ({each})}})"
        items = ", ".join(f"{quoted(name)}: {text}" for name, text in texts.items())
        return f"nn.ModuleDict({{{items}}})"


def _buffer(module: nn.Module, name: str, where: str, old: str) -> str:
    """The statement that takes a buffer of a module over."""
    keep = ", persistent=False" if name in module._non_persistent_buffers_set else ""
    return f'{where}.register_buffer("{name}", {old}.{name}{keep})'
