"""A scope that is a plain chain of calls as an ``nn.Sequential`` that keeps the names of its parts."""

from __future__ import annotations

import keyword
import operator
import types
from collections.abc import Mapping

from torch import nn

from ..errors import EmissionError
from ..graph import Graph, Node, Ref, Scope, iter_refs
from ..paths import span
from . import format
from .effects import refuse_effects
from .expressions import Writer, quoted
from .printer import Printed
from .specialised import guarded

# Functions that have a layer: its text from the arguments behind the tensor.
_PLAIN_LAYERS = {
    "relu": "ReLU", "gelu": "GELU", "silu": "SiLU", "sigmoid": "Sigmoid", "tanh": "Tanh",
    "hardswish": "Hardswish", "leaky_relu": "LeakyReLU", "adaptive_avg_pool2d": "AdaptiveAvgPool2d",
    "adaptive_avg_pool1d": "AdaptiveAvgPool1d", "max_pool2d": "MaxPool2d", "avg_pool2d": "AvgPool2d",
}  # fmt: skip
_DEFAULT_ONLY = {"relu", "gelu", "silu", "sigmoid", "tanh", "hardswish"}


def print_sequential(
    graph: Graph,
    scope: Scope,
    module: nn.Module,
    *,
    arg: str,
    target: str | None = None,
    new: Mapping[str, str] = types.MappingProxyType({}),
    base: Graph | None = None,
) -> Printed | None:
    """Print a scope whose forward is a chain of calls as one ``nn.Sequential``.

    Every part keeps its name, so the keys of the ``state_dict`` are unchanged. A flatten in between
    becomes ``nn.Flatten(1)``, a functional activation its layer.

    Args:
        graph, scope, module, new, base: As for `print_class`.
        arg: What the text calls the old module.
        target: The variable to assign to; without one the text is an expression.

    Returns:
        The text, or ``None`` where the scope is no such chain or names could not be kept.
    """
    writer = Writer(graph, scope, module, new, base)
    chain = _chain(writer)
    if chain is None or scope.opaque:
        return None
    try:
        guarded(writer, allowed=False)
        refuse_effects(writer)
    except EmissionError:
        return None
    parts: list[tuple[str, str]] = []
    used: set[int] = set()
    for node in chain:
        part = _part(writer, node, arg)
        if part is None:
            return None
        if node.kind == "module" and not _new(writer, node):
            layer = module.get_submodule(writer.below(node.target))
            if id(layer) in used and any(True for _ in layer.state_dict()):
                return None  # its weights would have two keys
            used.add(id(layer))
        parts.append(part)
    parts = _distinct(parts, set(module._modules) - set(new))
    text = _slice(module, parts, arg)
    if text is None:
        writer.imports.nn()
        writer.imports.add("from collections import OrderedDict")
        if all(name.isidentifier() and not keyword.iskeyword(name) for name, _ in parts):
            inner = ", ".join(f"{name}={value}" for name, value in parts)
        else:
            inner = "[" + ", ".join(f"({quoted(n)}, {value})" for n, value in parts) + "]"
        text = f"nn.Sequential(OrderedDict({inner}))"
    if target is not None:
        text = f"{target} = {text}"
    keeps = tuple(n for n, _ in parts if n in module._modules)
    return Printed(tuple(writer.imports.lines), format.fit(text), keeps)


def _chain(writer: Writer) -> list[Node] | None:
    """The calls from the one input to the output, where each reads only the one before."""
    inputs = [n for n in writer.nodes if n.kind == "input" and writer.users[n.id]]
    output = next((n for n in writer.nodes if n.kind == "output"), None)
    if len(inputs) != 1 or output is None or not isinstance(output.args[0], Ref):
        return None
    current, chain, seen = inputs[0], [], {inputs[0].id, output.id}
    for node in writer.nodes:
        if node.kind in ("input", "output"):
            continue
        if node.impure and node.kind == "function" and not node.outputs:
            return None  # a with block
        if node.kind == "parameter" or node.glue:
            seen.add(node.id)
            continue
        refs = [r.id for r in iter_refs((node.args, node.kwargs))]
        reads = [r for r in refs if not _is_aside(writer, r)]
        if reads != [current.id] or node.args[:1] != (Ref(current.id),):
            return None
        chain.append(node)
        current = node
    return chain if chain and output.args[0] == Ref(current.id) else None


def _is_aside(writer: Writer, id: str) -> bool:
    node = writer.by_id[id]
    return node.kind == "parameter" or node.glue


def _new(writer: Writer, node: Node) -> bool:
    return (writer.below(node.target) or "").partition(".")[0] in writer.new


def _part(writer: Writer, node: Node, arg: str) -> tuple[str, str] | None:
    """Name and text of one part."""
    if node.kind == "module":
        name = writer.below(node.target)
        if not name or "." in name or len(node.args) != 1 or node.kwargs:
            return None
        if name in writer.new:
            return name, writer.new[name]
        text = writer.attribute(node.target)
        return name, arg + text[len("self") :]
    layer = _layer(writer, node, arg)
    if layer is None:
        return None
    writer.imports.nn()
    name = "flatten" if layer.startswith("nn.Flatten") else node.type
    return name, layer


def _layer(writer: Writer, node: Node, arg: str) -> str | None:
    """The layer that does what a function does."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    rest = node.args[1:]
    if name == "flatten":
        return _flatten(rest, dict(node.kwargs))
    if name in ("view", "reshape"):
        return "nn.Flatten(1)" if _keeps_batch_only(writer, node) else None
    kwargs = {k: v for k, v in node.kwargs.items() if v not in (False, None)}
    if name == "dropout":
        return _dropout(writer, node, arg)
    if name not in _PLAIN_LAYERS or any(True for _ in iter_refs((rest, kwargs))):
        return None
    if name in _DEFAULT_ONLY and (rest or kwargs.keys() - {"approximate"}):
        return None
    if kwargs.get("approximate") == "none":
        del kwargs["approximate"]
    inner = [writer.text(a) for a in rest]
    inner += [f"{k}={writer.text(v)}" for k, v in kwargs.items()]
    return f"nn.{_PLAIN_LAYERS[name]}({', '.join(inner)})"


def _flatten(rest: tuple, kwargs: dict) -> str | None:
    start = rest[0] if rest else kwargs.get("start_dim", 0)
    end = rest[1] if len(rest) > 1 else kwargs.get("end_dim", -1)
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    return f"nn.Flatten({start})" if end == -1 else f"nn.Flatten({start}, {end})"


def _keeps_batch_only(writer: Writer, node: Node) -> bool:
    """``x.view(x.size(0), -1)`` and its relatives."""
    shape = node.args[1:]
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    if len(shape) != 2 or shape[1] != -1 or not isinstance(shape[0], Ref):
        return False
    size = writer.by_id[shape[0].id]
    if size.kind == "method" and size.target == "size":
        return size.args == (node.args[0], 0)
    if size.target is not operator.getitem or size.args[1] != 0:
        return False
    whole = writer.by_id[size.args[0].id]
    return writer.is_shape(whole) and whole.args[0] == node.args[0]


def _dropout(writer: Writer, node: Node, arg: str) -> str | None:
    values = dict(zip(("p", "training", "inplace"), node.args[1:], strict=False))
    values.update(node.kwargs)
    training = values.get("training")
    if not isinstance(training, Ref) or writer.by_id[training.id].kind != "parameter":
        return None
    if writer.below(writer.by_id[training.id].target) != "training":
        return None
    p = values.get("p", 0.5)
    return f"nn.Dropout({p}).train({arg}.training)" if isinstance(p, float) else None


def _distinct(parts: list[tuple[str, str]], taken: set[str]) -> list[tuple[str, str]]:
    """Names of further calls of one layer, and of layers made here, that nobody else has."""
    seen: set[str] = set()
    found = []
    for name, text in parts:
        base, k = name, 1
        while name in seen or (name in taken and not text.endswith(_access(name))):
            name = f"{base}_{k}"
            k += 1
        seen.add(name)
        found.append((name, text))
    return found


def _access(name: str) -> str:
    return f"[{name}]" if name.isdigit() else f".{name}" if name.isidentifier() else f'"{name}")'


def _slice(module: nn.Module, parts: list[tuple[str, str]], arg: str) -> str | None:
    """``model[:5]`` for a run of a numbered container: a slice keeps the keys."""
    if type(module) is not nn.Sequential:
        return None
    names = list(module._modules)
    own = [name for name, _ in parts]
    if own[0] not in names or any(text != f"{arg}{_access(name)}" for name, text in parts):
        return None
    start = names.index(own[0])
    if names[start : start + len(own)] != own:
        return None
    return arg + span(start, start + len(own), len(names))
