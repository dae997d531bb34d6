"""One assignment, many calls: a module that serves several places changes all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..report import Finding
from ..subject import Subject, listed


def check(subject: Subject) -> Iterator[Finding]:
    """Modules that were exchanged and ran more than once in the original."""
    counts = Counter(
        n.target for s in subject.before.scopes.values() for n in s.nodes if n.kind == "module"
    )
    kept = {subject.built.paths.get(id(m)) for _, m in subject.modules()}
    standing = {path for path, _ in subject.modules()}
    several = {
        path: count
        for path, count in counts.items()
        if count > 1 and path not in kept and path in standing
    }
    # what lies inside an exchanged module was exchanged with it
    several = {p: n for p, n in several.items() if not any(p.startswith(q + ".") for q in several)}
    if not several:
        return
    if len(several) == 1:
        ((path, count),) = several.items()
        yield Finding("info", f"{path} serves {count} calls: all of them change")
    else:
        total = sum(several.values())
        yield Finding(
            "info",
            f"{len(several)} exchanged modules serve {total} calls ({listed(several)}): all change",
        )
