"""Operations that only move numbers: flatten, view, permute, slices."""

from torch import nn

from ..subject import Subject, product, sentences, shape, words


def _moved(subject: Subject) -> str:
    return f"{shape(subject.x, batch=True)} becomes {shape(subject.y, batch=True)}"


@words(nn.Flatten, "flatten", "ravel")
def flatten(subject: Subject) -> str | None:
    """Axes are joined into one; the numbers stay."""
    if not subject.x or not subject.y:
        return None
    extra = ""
    if len(subject.x) > 2 and len(subject.y) == 2:
        extra = f"{'·'.join(map(str, subject.x[1:]))} = {subject.y[1]} numbers for each example"
    return sentences(
        f"Joins axes without touching a number: {_moved(subject)}",
        extra,
        "It is a call in the forward, so nn.Sequential(*children()) loses it"
        if subject.module is None
        else "",
    )


@words("view", "reshape", "unflatten", nn.Unflatten, "squeeze", "unsqueeze", "expand", "contiguous")
def view(subject: Subject) -> str | None:
    """The same numbers under another shape."""
    if not subject.x or not subject.y:
        return None
    if subject.x == subject.y:
        return f"Leaves the shape {shape(subject.y, batch=True)} as it is"
    copies = product(subject.y) // max(product(subject.x), 1)
    what = "The same numbers in another shape" if copies <= 1 else "The same numbers, repeated"
    return f"{what}: {_moved(subject)}"


@words("permute", "transpose", "swapaxes", "movedim", "t", "T", "mT")
def permute(subject: Subject) -> str | None:
    """Axes change places."""
    if not subject.x or not subject.y:
        return None
    return f"Axes change places, numbers stay: {_moved(subject)}"


@words("getitem", "narrow", "select", "index_select", "gather")
def slices(subject: Subject) -> str | None:
    """A part is taken."""
    if not subject.x or not subject.y:
        return None
    share = product(subject.y) / max(product(subject.x), 1)
    return sentences(f"Takes a part: {_moved(subject)}", f"{share:.3g} of the numbers are kept")


@words("chunk", "split", "unbind", "tensor_split")
def pieces(subject: Subject) -> str | None:
    """One tensor is cut into several."""
    count = len(subject.node.outputs)
    if not subject.x or not count:
        return None
    sizes = {shape(t.shape, batch=True) for t in subject.node.outputs}
    return f"Cuts {shape(subject.x, batch=True)} into {count} pieces of {', '.join(sorted(sizes))}"


@words("mean", "sum", "amax", "amin", "max", "min", "prod", "norm", "std", "var", "logsumexp")
def reduction(subject: Subject) -> str | None:
    """Axes are folded into one number each."""
    if not subject.x or not subject.y:
        return None
    names = {"mean": "the mean", "sum": "the sum", "amax": "the largest", "max": "the largest"}
    what = names.get(subject.node.type, f"the {subject.node.type}")
    return f"Takes {what} over some axes: {_moved(subject)}"


@words("interpolate", "upsample", nn.Upsample, "grid_sample")
def resize(subject: Subject) -> str | None:
    """Another spatial size."""
    if not subject.x or not subject.y:
        return None
    mode = getattr(subject.module, "mode", None) or subject.arg("mode", 3, "nearest")
    return f"Resizes the grid ({mode}), learns nothing: {_moved(subject)}"


@words("pad", nn.modules.padding._ConstantPadNd)
def pad(subject: Subject) -> str | None:
    """A border is added."""
    return f"Adds a border: {_moved(subject)}" if subject.x and subject.y else None


@words(nn.Identity)
def identity(subject: Subject) -> str:
    """Nothing happens."""
    return "Hands on what it gets, unchanged"


@words("clone", "detach", "to", "float", "half", "double", "type", "type_as")
def copies(subject: Subject) -> str | None:
    """The same numbers as another object."""
    what = {
        "clone": "A copy of the numbers, so that a later in-place write does not reach them",
        "detach": "The same numbers, cut off from the gradient",
    }.get(subject.node.type)
    if what is None and subject.node.outputs:
        what = f"The same numbers as {subject.node.outputs[0].dtype} on {subject.node.outputs[0].device}"
    return what
