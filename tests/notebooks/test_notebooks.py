"""The notebooks run from top to bottom, and show what is saved in them."""

import pathlib

import nbformat
import pytest

from tests.notebooks.execute import FOLDER, run, texts

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def pair(request):
    """A notebook as it is saved, and as it comes out of a fresh kernel."""
    saved = nbformat.read(request.param, as_version=4)
    return saved, run(request.param)


def test_notebooks_are_there():
    """The main notebook and the lesson exist."""
    assert {"01_explore", "03_how_resnet_is_wired"} <= {path.stem for path in NOTEBOOKS}


def test_what_is_printed_is_what_is_saved(pair):
    """Executed afresh, every cell gives the text that is saved with it."""
    saved, fresh = pair
    assert texts(fresh) == texts(saved)


def test_pictures_are_saved(pair):
    """Every cell that shows a picture or a table has one saved, for readers without a kernel."""
    for notebook in pair:
        shown = [
            o.get("data", {}) for c in notebook.cells if c.cell_type == "code" for o in c.outputs
        ]
        assert any("image/svg+xml" in d or "svg" in d.get("text/html", "") for d in shown)
        assert any("nbs-table" in d.get("text/html", "") for d in shown)


def test_no_output_is_an_error(pair):
    """Errors that a notebook shows are caught and printed, never raised."""
    kinds = {o.output_type for n in pair for c in n.cells for o in c.get("outputs", [])}
    assert "error" not in kinds and kinds


def test_the_emitted_cell_is_the_widgets_code(pair):
    """A cell that Emit made is what the widget emits there today."""
    saved, fresh = pair
    emitted = [c for c in saved.cells if "emitted" in c.metadata.get("tags", [])]
    main = "Explore a model" in saved.cells[0].source
    assert len(emitted) == (1 if main else 0)
    for cell in emitted:
        assert cell.source.strip() in "\n".join(texts(fresh))


def test_nothing_of_this_machine_is_saved(pair):
    """No path of the machine that ran a notebook stands in it."""
    text = nbformat.writes(pair[0])
    assert str(pathlib.Path.home()) not in text and str(FOLDER.parent) not in text
