"""Where branches meet: sums, products, joins."""

from ..subject import Subject, plural, sentences, shape, words


def _names(subject: Subject) -> list[str]:
    graph = subject.graph
    return [graph.by_id[id].name for id in graph.inputs_of(subject.node.id)]


@words("add", "iadd", "sub", "isub", "rsub")
def add(subject: Subject) -> str | None:
    """A skip connection meets here, or a number is added."""
    verb = "Subtracts" if "sub" in subject.node.type else "Adds"
    names = _names(subject)
    if len(subject.inputs) < 2:
        return f"{verb} a number to each of {shape(subject.y)}" if subject.y else None
    if len(names) < 2:
        return f"{verb} two values of {names[0]}, number by number" if names else None
    a, b = subject.inputs[0].shape, subject.inputs[1].shape
    spread = "" if a == b else (
        f"The shapes {shape(a, batch=True)} and {shape(b, batch=True)} are spread to "
        f"{shape(subject.y, batch=True)}"
    )  # fmt: skip
    both = f"{names[0]} and {names[1]}"
    what = (
        f"{verb} {both}, number by number"
        if verb == "Adds"
        else f"{verb} {names[1]} from {names[0]}"
    )
    return sentences(what, spread or f"The shape stays {shape(subject.y)}; nothing is learned")


@words("mul", "imul", "div", "truediv", "itruediv")
def scale(subject: Subject) -> str | None:
    """A gate or a factor."""
    verb = "Multiplies" if "mul" in subject.node.type else "Divides"
    names = _names(subject)
    if len(subject.inputs) < 2 or len(names) < 2:
        return f"{verb} each number by a factor; the shape stays {shape(subject.y)}"
    word = "and" if verb == "Multiplies" else "by"
    return f"{verb} {names[0]} {word} {names[1]}, number by number, to {shape(subject.y)}"


@words("cat", "concat", "concatenate")
def cat(subject: Subject) -> str | None:
    """Tensors side by side along one axis."""
    shapes = [tensor.shape for tensor in subject.inputs]
    axis = subject.arg("dim", 1, 0)
    if not shapes or not subject.y or not isinstance(axis, int):
        return None
    axis %= len(subject.y)
    if all(len(s) > axis for s in shapes):
        sizes = " + ".join(str(s[axis]) for s in shapes)
        total = f": {sizes} = {subject.y[axis]}"
    else:
        total = ""
    what = "channels" if axis == 1 and len(subject.y) > 2 else f"axis {axis}"
    return sentences(
        f"Puts {plural(len(shapes), 'tensor')} side by side along {what}{total}",
        "Whoever reads it depends on the order",
    )


@words("stack")
def stack(subject: Subject) -> str:
    """Tensors on a new axis."""
    axis = subject.arg("dim", 1, 0)
    return (
        f"Stacks {plural(len(subject.inputs), 'tensor')} along a new axis {axis}: "
        f"{shape(subject.y, batch=True)}"
    )
