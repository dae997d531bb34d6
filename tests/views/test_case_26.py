"""Acceptance case 26: the table of a branching net, as Keras has it."""

import importlib.util
import pathlib
import sys

import pytest

import nbsurgery as nbs

PATH = pathlib.Path(__file__).parent.parent / "cases" / "26_connected_to_table.py"


@pytest.fixture(scope="module")
def case():
    spec = importlib.util.spec_from_file_location("case_26", PATH)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_connected_to_table(case):
    """Rows in execution order with their predecessors; shared parameters counted once."""
    model = case.build()
    table = nbs.capture(model, *case.example_inputs()).table()
    rows = [row for row in table.rows if row.kind != "group"]
    index = {row.layer: i for i, row in enumerate(rows)}
    shown = [
        (
            row.kind,
            {"module": row.path, "function": row.type}.get(row.kind, row.layer),
            row.scope,
            [index[name] for name in row.connected],
            row.shape,
            row.params,
        )
        for row in rows
    ]
    case.check(shown, model)
    assert table.totals["params"] == case.TOTAL_PARAMS
    assert "shared" in str(table)


def test_the_common_mistake_is_rejected(case):
    """The case's own check tells a table by module hooks from a right one."""
    with pytest.raises(AssertionError):
        case.check(case.wrong(case.build()), case.build())
