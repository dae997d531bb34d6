"""The widget in a real notebook over made-up answers: shown, clicked, asked, emitted."""

CELL = "from tests.widget.fake_session import demo; w = demo(); w"


def test_slice(notebook):
    """A widget paints, a click selects and asks for facts, Emit writes the next cell."""
    book = notebook(CELL, "print('tail')")
    book.run(0)
    widget = book.widget()
    book.shot("slice_first")
    widget.click("bn1")
    assert widget.selection() == ["bn1"]
    widget.root.locator(".nbs-head-line h3", has_text="bn1").wait_for()
    assert book.execute("print(w.selection)").strip() == "['bn1']"
    book.shot("slice_selected")
    assert "nothing to emit yet" in widget.emit()
    assert book.sources() == [CELL, "print('tail')"]
    book.execute("w.remove(['bn1'])")
    widget.idle()
    widget.emit()
    assert book.sources() == [CELL, book.execute("print(w.code, end='')"), "print('tail')"]
    assert book.active() == 1
    book.shot("slice_emitted")
