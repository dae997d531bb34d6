"""Long lines broken as `ruff format` breaks them, for the shapes of line that emission makes."""

from __future__ import annotations

import re
import textwrap

WIDTH = 100
_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = set(_OPEN.values())
# Weakest first: a long expression is broken at its weakest operator, a comprehension before that.
_OPERATORS = (
    (" for ",),
    (" or ",),
    (" and ",),
    (" in ", " not in ", " is ", " is not ", " == ", " != ", " < ", " > ", " <= ", " >= "),
    (" | ",),
    (" ^ ",),
    (" & ",),
    (" << ", " >> "),
    (" + ", " - "),
    (" * ", " / ", " // ", " % ", " @ "),
)


def fit(text: str, width: int = WIDTH) -> str:
    """The text with every statement that is too long broken; docstrings and comments stay."""
    lines: list[str] = []
    quoted = False
    for line in text.split("\n"):
        marks = line.count('"""')
        if quoted or marks or line.lstrip().startswith("#") or len(line) <= width:
            lines.append(line)
            quoted = quoted != (marks % 2 == 1)
            continue
        code, remark = _remark(line)
        short = len(code) <= width or _open(code)
        broken = [code] if short else _statement(code, width)
        lines += [broken[0] + remark, *broken[1:]]
    return "\n".join(lines)


def _open(code: str) -> bool:
    """Whether a line is only the start of a statement: it is broken already."""
    last = [(char, depth) for _, char, depth in _scan(code)][-1:]
    return bool(last) and last[0][1] + (last[0][0] in _OPEN) > 0


def _remark(line: str) -> tuple[str, str]:
    """The code of a line, and the author's remark behind it: that is not broken."""
    at = next((i for i, char, _ in _scan(line) if char == "#"), len(line))
    code = line[:at].rstrip()
    return code, line[len(code) :]


def wrapped(text: str, width: int) -> list[str]:
    """Prose on lines; what stands in one pair of parentheses stays on one."""
    whole = re.sub(r"\([^()]{,60}\)", lambda match: match[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def docstring(text: str, indent: str, width: int = WIDTH) -> str:
    """A docstring on one line, or wrapped with the quotes on a line of their own."""
    text = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    line = f'{indent}"""{text}"""'
    if len(line) <= width and "\n" not in text:
        return line
    first, _, rest = text.partition("\n")
    room = width - len(indent)
    lines = wrapped(f'"""{first}', room)
    if len(lines) == 1 and not rest:  # only the quotes do not fit: as well on two full lines
        lines = wrapped(f'"""{first}', len(lines[0]) - 1)
    for paragraph in rest.split("\n") if rest else ():
        lines += wrapped(paragraph.strip(), room) or [""]
    return "\n".join([*((indent + line).rstrip() for line in lines), f'{indent}"""'])


def _statement(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    body = line.strip()
    if match := re.fullmatch(r"(from [\w.]+ import )([\w, ]+)", body):
        names = [f"{indent}    {name}," for name in match[2].split(", ")]
        return [f"{indent}{match[1]}(", *names, f"{indent})"]
    if match := re.match(r"(return |[\w., *\[\]()]+ (?:[-+*/&|^]?=) )", body):
        head, expression = match[1], body[match.end() :]
        targets, _, sign = head.rstrip().rpartition(" ")
        far = len(indent + targets) + len(sign) + 3 > width  # no right side would fit behind them
        if "," in targets and (far or re.fullmatch(r"[\w.]+", expression)):
            parts = _split_commas(targets)
            names = [line for part in parts for line in _with_comma(indent + "    ", part, width)]
            first, *rest = _brackets(indent, f"_ {sign} {expression}", width)
            return [f"{indent}(", *names, first.replace("_", ")", 1), *rest]
        return _expression(indent, head, expression, "", width)
    if match := re.match(r"((?:el)?if |while |assert )(.*)(:?)$", body):
        tail = ":" if body.endswith(":") else ""
        expression = match[2][: -len(tail)] if tail and match[2].endswith(":") else match[2]
        return _expression(indent, match[1], expression, tail, width)
    return _brackets(indent, body, width)


def _expression(indent: str, head: str, expression: str, tail: str, width: int) -> list[str]:
    """A statement whose right side may be put into parentheses."""
    parts = _split_commas(expression)
    if len(parts) > 1:  # a tuple without parentheses: one part a line
        body = [line for part in parts for line in _with_comma(indent + "    ", part, width)]
        return [f"{indent}{head}(", *body, f"{indent}){tail}"]
    pieces = _split_operators(expression)
    dots = _dots(expression)
    last = _last_bracket(expression)
    many = len(pieces) > 2 or (len(pieces) == 1 and len(dots) > 2)
    fits_before = last is not None and len(indent + head) + last + 1 <= width
    if not many and last is not None and fits_before and expression[-1] in _CLOSE:
        return _brackets(indent, head + expression + tail, width)
    opening = re.match(r"[\w.]*[(\[{]", expression)
    opens = opening is None or len(indent + head + opening[0]) <= width
    if len(pieces) == 1 and len(dots) <= 2 and last is not None and not tail and opens:
        return _brackets(indent, head + expression + tail, width)
    inner = indent + "    "
    if len(inner + expression) <= width:
        body = [inner + expression]
    elif len(pieces) > 1:
        body = [part for piece in pieces for part in _brackets(inner, piece, width)]
    elif len(dots) > 2:
        body = [part for piece in dots for part in _brackets(inner, piece, width)]
    else:
        body = _brackets(inner, expression, width)
    return [f"{indent}{head}(", *body, f"{indent}){tail}"]


def _with_comma(indent: str, item: str, width: int) -> list[str]:
    lines = _brackets(indent, item, width - 1)
    lines[-1] += ","
    return lines


def _brackets(indent: str, text: str, width: int) -> list[str]:
    """Break inside the last bracket: its content on one line, or one item a line."""
    if len(indent + text) <= width:
        return [indent + text]
    start = _last_bracket(text)
    if start is None:
        return [indent + text]
    if len(indent) + start + 1 > width:  # what stands before it is too long by itself
        start = _first_long_bracket(text) or start
    end = _closing(text, start)
    inner, content = indent + "    ", text[start + 1 : end]
    if not content.strip():
        return [indent + text]
    before, after = text[: start + 1], text[end:]
    items = _split_commas(content)
    # a display of several items goes one a line at once, a call's arguments stay together if they fit
    call = (
        text[start] != "{" and start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_)]")
    )
    if len(items) == 1 and items[0].startswith("*"):
        call = True
    if len(inner + content) <= width and (call or len(items) == 1):
        body = [inner + content]
    elif len(items) == 1 and not content.rstrip().endswith(","):
        pieces = _split_operators(content)
        body = [p for piece in pieces for p in _brackets(inner, piece, width)]
    else:
        body = []
        for item in items:
            body += _with_comma(inner, item, width)
    return [indent + before, *body, indent + after]


def _scan(text: str):
    """Every character outside of strings with its index and bracket depth."""
    depth, quote, i = 0, "", 0
    while i < len(text):
        char = text[i]
        if quote:
            if char == "\\":
                i += 1
            elif text.startswith(quote, i):
                i += len(quote) - 1
                quote = ""
        elif char in "\"'":
            quote = char * 3 if text.startswith(char * 3, i) else char
            i += len(quote) - 1
        else:
            if char in _CLOSE:
                depth -= 1
            yield i, char, depth
            if char in _OPEN:
                depth += 1
        i += 1


def _last_bracket(text: str) -> int | None:
    """Where the last bracket of the outermost level opens.

    Left out are empty ones, and a subscript behind a call: ``f(…)[:, None]`` breaks in the call.
    """
    opened = start = None
    for i, char, depth in _scan(text):
        if depth == 0 and char in _OPEN:
            opened = i
        elif depth == 0 and char in _CLOSE and opened is not None and i > opened + 1:
            behind_call = text[opened] == "[" and opened > 0 and text[opened - 1] == ")"
            if not (behind_call and start is not None):
                start = opened
    return start


def _first_long_bracket(text: str) -> int | None:
    """Where the bracket of the outermost level opens that holds most."""
    opened, best, most = 0, None, 2
    for i, char, depth in _scan(text):
        if depth == 0 and char in _OPEN:
            opened = i
        elif depth == 0 and char in _CLOSE and i - opened > most:
            best, most = opened, i - opened
    return best


def _closing(text: str, start: int) -> int:
    return next(i for i, char, depth in _scan(text) if i > start and char in _CLOSE and depth == 0)


def _split_commas(text: str) -> list[str]:
    cuts = [i for i, char, depth in _scan(text) if char == "," and depth == 0]
    parts = [text[a:b].strip() for a, b in zip([0, *(c + 1 for c in cuts)], [*cuts, len(text)])]
    return [part for part in parts if part]


def _split_operators(text: str) -> list[str]:
    """The operands of the weakest operator, each but the first led by its operator."""
    for level in _OPERATORS:
        cuts = [
            i
            for i, char, depth in _scan(text)
            if depth == 0 and char == " " and any(text.startswith(op, i) for op in level)
        ]
        if cuts:
            ends = [*cuts, len(text)]
            return [text[: cuts[0]]] + [text[a + 1 : b] for a, b in zip(cuts, ends[1:])]
    return [text]


def _dots(text: str) -> list[str]:
    """A chain of method calls, each call a piece: ``["self.qkv(x)", ".reshape(…)", …]``."""
    cuts = []
    called = False
    for i, char, depth in _scan(text):
        if depth == 0 and char in ")]":
            called = True
        elif depth == 0 and char == "." and called:
            cuts.append(i)
            called = False
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]
