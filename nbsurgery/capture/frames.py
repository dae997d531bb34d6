"""Where the author wrote an operation: its call stack, noted cheaply, resolved later."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import os
import sys
import sysconfig
import textwrap
from types import CodeType

import torch

from nbsurgery.capture import indexing
from nbsurgery.graph import Frame

_SKIP, _KEEP, _BORDER, _WATCH = 0, 1, 2, 3
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_SITE = tuple({sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]})
# Files through which Python operators reach a mode: the operator itself stands one frame above.
_WRAPPERS = tuple(_TORCH + name for name in ("_tensor.py", "overrides.py", "functional.py"))
_EXACT = sys.version_info >= (3, 11)

_kind: dict[CodeType, int] = {}
_uses: dict[CodeType, tuple] = {}
_bytes: dict[CodeType, bytes] = {}
_positions: dict[CodeType, list] = {}
_frames: dict[tuple, Frame] = {}
_wrapper: dict[CodeType, bool] = {}


def border(function) -> None:
    """Declare that the stack of an operation ends where `function` runs."""
    _kind[function.__code__] = _BORDER


def _classify(code: CodeType) -> int:
    file = code.co_filename
    if file.startswith((_OURS, _TORCH)):
        kind = _SKIP
    elif file.startswith("<"):  # cells of older IPython are authors' text; generated code is not
        kind = _KEEP if file.startswith(("<ipython", "<stdin", "<string")) else _SKIP
        if code.co_name.startswith("__") and file == "<string>":
            kind = _SKIP  # methods that dataclasses write
    elif file.startswith(_STDLIB) and not file.startswith(_SITE):
        kind = _SKIP
    else:
        kind = _KEEP
    if kind == _KEEP:
        places = _uses[code] = indexing.uses(code)
        kind = _WATCH if places else _KEEP
    _kind[code] = kind
    return kind


def walk(depth: int = 2, meet=None) -> tuple:
    """The author's frames from here up to the border, outermost first, not yet resolved.

    Where one of them may take a part of a list by a number, ``meet(frame, uses, innermost)`` is
    called.
    """
    frame = sys._getframe(depth)
    found = []
    known = _kind
    while frame is not None:
        code = frame.f_code
        kind = known.get(code)
        if kind is None:
            kind = _classify(code)
        if kind == _KEEP or kind == _WATCH:
            found.append((code, frame.f_lasti, 0 if _EXACT else frame.f_lineno))
            if kind == _WATCH and meet is not None:
                meet(frame, _uses[code], len(found) == 1)
        elif kind == _BORDER:
            break
        frame = frame.f_back
    found.reverse()
    return tuple(found)


def at(code: CodeType, offset: int) -> tuple:
    """The stack of the author's running function with this code, at another place in it."""
    found = walk(3)
    for i in range(len(found) - 1, -1, -1):
        if found[i][0] is code:
            return (*found[:i], (code, offset, found[i][2]))
    return found


def resolve(raw: tuple) -> tuple[Frame, ...]:
    """Frames with exact positions for what `walk` noted."""
    return tuple(_resolve(entry) for entry in raw)


def _resolve(entry: tuple) -> Frame:
    frame = _frames.get(entry)
    if frame is None:
        code, lasti, line = entry
        if _EXACT:
            table = _positions.get(code)
            if table is None:
                table = _positions[code] = list(code.co_positions())
            first, last, column, end = table[lasti // 2]
            position = (first, last, column, end)
            line = first or code.co_firstlineno
        else:
            position = (line, None, None, None)
        if len(_frames) > 200_000:
            _frames.clear()
        frame = _frames[entry] = Frame(code.co_filename, line, code, position)
    return frame


def is_operator(depth: int = 2) -> bool:
    """Whether the running operation was written as an operator (``a + b``), not as a call."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        skip = _wrapper.get(code)
        if skip is None:
            skip = _wrapper[code] = code.co_filename.startswith((_OURS, *_WRAPPERS))
        if not skip:
            text = _bytes.get(code)
            if text is None:
                text = _bytes[code] = code.co_code
            name = dis.opname[text[frame.f_lasti]]
            return name.startswith(("BINARY_", "COMPARE_", "UNARY_", "INPLACE_"))
        frame = frame.f_back
    return False


def uses(frame) -> bool:
    """Whether an author's code that makes a text makes it for more than to tell people."""
    code = frame.f_code
    kind = _kind.get(code)
    if (_classify(code) if kind is None else kind) not in (_KEEP, _WATCH):
        return False
    key = code, frame.f_lineno
    told = _told.get(key)
    if told is None:
        told = _told[key] = _tells(_statement(*key))
    return not told


_told: dict[tuple, bool] = {}
_TELLS = frozenset(
    (
        "_assert", "_check", "check", "debug", "info", "warning", "warning_once", "warn",
        "warn_once", "error", "exception", "critical", "log", "print",
    )
)  # fmt: skip


def _tells(statement: ast.stmt | None) -> bool:
    """An assertion, an error, a warning, a line of a log."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return getattr(called, "attr", getattr(called, "id", None)) in _TELLS
    return isinstance(statement, (ast.Assert, ast.Raise))


def _statement(code: CodeType, line: int) -> ast.stmt | None:
    """The innermost statement of a function that covers a line, if its source is at hand."""
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    line = line - first + 1
    found = None
    for node in ast.walk(tree):  # outer ones come first
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            found = node
    return found


def innermost(raw: tuple) -> Frame | None:
    """The innermost of the author's frames."""
    return _resolve(raw[-1]) if raw else None


def text(raw: tuple) -> str:
    """The expression of the innermost author's frame, as it stands in the file, on one line."""
    return spell(resolve(raw[-1:]))


def spell(resolved: tuple[Frame, ...]) -> str:
    """The same for frames that are resolved."""
    if not resolved:
        return ""
    frame = resolved[-1]
    line, end, column, stop = frame.position
    if line is None or end is None or column is None or stop is None:
        # before Python 3.11 only the line is known
        return _test(linecache.getline(frame.file, frame.line).strip())
    lines = [linecache.getline(frame.file, n).encode() for n in range(line, end + 1)]
    if not lines or not lines[0]:
        return ""
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][column:]
    text = _test(" ".join(part.decode(errors="replace").strip() for part in lines))
    return text if len(lines) == 1 else _one_line(text)


def _one_line(text: str) -> str:
    """A call that its author wrote over several lines, as one would write it on one."""
    try:
        text = ast.unparse(ast.parse(text, mode="eval"))
    except SyntaxError:
        pass
    return text if len(text) <= 100 else text[:99] + "…"


def _test(text: str) -> str:
    """Of a whole ``if``, ``while`` or ``for`` statement, only what it asks."""
    if not text.startswith(("if ", "while ", "elif ", "assert ", "for ")):
        return text
    source = text.removeprefix("el")
    for candidate in (source, source.split(":")[0] + ": pass"):
        try:
            found = ast.parse(candidate).body[0]
        except SyntaxError:
            continue
        asked = found.iter if isinstance(found, ast.For) else getattr(found, "test", None)
        return asked and ast.get_source_segment(candidate, asked) or text
    return text


def stands_in_globals(value) -> bool:
    """Whether a value is a global of the Python module of some function that runs now."""
    frame = sys._getframe(1)
    seen = set()
    while frame is not None:
        kind = _kind.get(frame.f_code)
        if kind is None:
            kind = _classify(frame.f_code)
        if kind == _BORDER:
            break
        space = frame.f_globals
        if kind in (_KEEP, _WATCH) and id(space) not in seen:
            seen.add(id(space))
            if any(v is value for v in list(space.values())):
                return True
        frame = frame.f_back
    return False
