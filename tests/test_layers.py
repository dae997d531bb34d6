"""The law of the house: a part imports only what lies below it; parts of one row not each other."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent / "nbsurgery"

# From the ground up. A part may import from rows below its own, and from itself.
ROWS = (
    ("errors",),
    ("graph",),
    ("capture", "annotate", "select"),
    ("draft",),
    ("operations", "emit"),
    ("verify", "render", "explain"),
    ("session",),
    ("views",),
    ("widget",),
)


def imports(path: pathlib.Path):
    """Every part of nbsurgery that a file imports, also inside functions and for types only."""
    package = ("nbsurgery", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += (node.module or "").split(".") if node.module else []
            names = [".".join(base)]
            if base == ["nbsurgery"]:
                names = [f"nbsurgery.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "nbsurgery":
                yield node.lineno, parts[1] if len(parts) > 1 else ""


def part_of(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


FILES = sorted(
    p for p in ROOT.rglob("*.py") if "node_modules" not in p.parts and part_of(p) != "__init__"
)


def levels() -> dict[str, float]:
    """The row of every part; a helper file beside the rows stands just above what it imports."""
    found: dict[str, float] = {name: level for level, row in enumerate(ROWS) for name in row}
    waiting = {part_of(path) for path in FILES if path.parent == ROOT} - set(found)
    while waiting:
        for name in sorted(waiting):
            below = {part for _, part in imports(ROOT / f"{name}.py")} - {name}
            if below <= set(found):
                found[name] = max((found[part] for part in below), default=0) + 0.1
                waiting.discard(name)
                break
        else:
            pytest.fail(f"these import each other in a circle: {sorted(waiting)}")
    return found


LEVEL = levels()


def test_every_package_has_a_place():
    """A new package is given its row here; a single file may stand beside them."""
    assert {part_of(path) for path in FILES} <= set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path):
    """No file imports from its own row or above, but from its own part."""
    own = part_of(path)
    wrong = [
        f"{path.name}:{line} imports {name or 'nbsurgery'}"
        for line, name in imports(path)
        if name != own and LEVEL.get(name, 99) >= LEVEL[own]
    ]
    assert not wrong


def test_graph_imports_no_torch():
    """The data model stands on its own."""
    for node in ast.walk(ast.parse((ROOT / "graph.py").read_text())):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            assert not any((name or "").startswith("torch") for name in names)


def test_every_file_begins_with_its_charter():
    """The first line of each file says what it is for."""
    missing = [
        str(p.relative_to(ROOT)) for p in FILES if not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert not missing
