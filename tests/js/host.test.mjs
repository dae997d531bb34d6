// Where the widget stands, and how code gets into the next cell.

import assert from "node:assert/strict";
import { test } from "node:test";
import { host, page, shown, SOURCE, widget } from "./page.mjs";

page("<div class='jp-Notebook'><div class='jp-Cell' data-windowed-list-index='2'><i id='in'></i></div></div>");
const { emit, isDark, notebook, ownCell } = await import(new URL("host.js", SOURCE));

const model = (manager, more = {}) => widget({ _widget_id: "w", _cell_id: "", ...more }, manager);

test("inserted, then updated in place, then unchanged", async () => {
  const here = host([{ outputs: [shown("w")] }, { source: "tail" }]);
  const m = model(here);
  assert.equal((await emit(m, null, "a")).action, "inserted");
  assert.equal((await emit(m, null, "b")).action, "updated");
  assert.equal((await emit(m, null, "b")).action, "unchanged");
  assert.deepEqual(here.sources(), ["", "b", "tail"]);
  assert.equal(here.list[1].state.metadata.nbsurgery.source, "b");
  assert.equal(here.list[1].state.metadata.trusted, true);
});

test("what the person edited stays, the new code goes below it", async () => {
  const here = host([{ outputs: [shown("w")] }, { source: "tail" }]);
  const m = model(here);
  await emit(m, null, "a");
  here.list[1].sharedModel.setSource("mine");
  assert.deepEqual(await emit(m, null, "b"), { ok: true, action: "inserted-below-edited", index: 2 });
  assert.deepEqual(here.sources(), ["", "mine", "b", "tail"]);
  assert.equal((await emit(m, null, "c")).action, "updated");
  assert.deepEqual(here.sources(), ["", "mine", "c", "tail"]);
});

test("a copy of the emitted cell is the person's own", async () => {
  const here = host([{ outputs: [shown("w")] }]);
  const m = model(here);
  await emit(m, null, "a");
  const metadata = { ...here.list[1].state.metadata };
  here.list.push(host([{ source: "a", metadata, id: "copy" }]).list[0]);
  await emit(m, null, "b");
  assert.deepEqual(here.sources(), ["", "b", "a"]);
});

test("what an earlier run of the same cell wrote stays, the new code goes below it", async () => {
  const here = host([{ id: "c0", outputs: [shown("w")] }, { source: "tail" }]);
  await emit(model(here), null, "a");
  here.list[0].state.outputs = [shown("w2")]; // the cell ran again: another widget
  const again = widget({ _widget_id: "w2", _cell_id: "" }, here);
  assert.equal((await emit(again, null, "b")).action, "inserted");
  assert.deepEqual(here.sources(), ["", "a", "b", "tail"]);
  assert.equal((await emit(again, null, "c")).action, "updated");
  assert.deepEqual(here.sources(), ["", "a", "c", "tail"]);
});

test("a new recipe of the same widget gets its own cell, below the old one", async () => {
  const here = host([{ outputs: [shown("w")] }, { source: "tail" }]);
  const m = model(here, { _recipe: 0 });
  await emit(m, null, "a");
  m.set("_recipe", 1);
  assert.equal((await emit(m, null, "b")).action, "inserted");
  assert.equal((await emit(m, null, "c")).action, "updated");
  assert.deepEqual(here.sources(), ["", "a", "c", "tail"]);
});

test("two widgets in one cell write a cell each", async () => {
  const here = host([{ id: "c0", outputs: [shown("w"), shown("w2")] }]);
  const [one, two] = ["w", "w2"].map((id) => widget({ _widget_id: id, _cell_id: "" }, here));
  await emit(one, null, "a");
  await emit(two, null, "b");
  await emit(one, null, "a2");
  assert.deepEqual(here.sources(), ["", "a2", "b"]);
});

test("the view's own cell wins, then the remembered one, then the last that shows it", async () => {
  const el = document.getElementById("in");
  const here = host([{ outputs: [shown("w")] }, {}, { outputs: [shown("w")], id: "two" }]);
  assert.equal(await ownCell(model(here), el), 2);
  assert.equal(await ownCell(model(here), null), 2);
  assert.equal(await ownCell(model(here), null, { cellId: here.list[0].id }), 0);
  const nowhere = host([{ id: "a" }, { id: "b" }]);
  assert.equal(await ownCell(model(nowhere, { _cell_id: "b" }), null), 1);
  assert.equal(await ownCell(model(nowhere), null), -1);
});

test("a widget inside boxes and outputs is found", async () => {
  const inner = { model_id: "w", get: () => undefined };
  const box = { model_id: "box", get: (name) => (name === "children" ? [inner] : undefined) };
  const output = { model_id: "out", get: (name) => (name === "outputs" ? [shown("box")] : undefined) };
  const here = host([{}, { outputs: [shown("out")] }, {}], { out: output, box });
  assert.equal(await ownCell(model(here), null), 1);
});

test("nowhere to stand: at the end", async () => {
  const here = host([{ source: "x" }]);
  assert.deepEqual(await emit(model(here), null, "a"), { ok: true, action: "inserted", index: 1 });
});

test("without the interface and in a read-only notebook it says why", async () => {
  assert.equal((await emit(model(undefined), null, "a")).why, "no-notebook");
  assert.equal(notebook(model({ context: { model: {} } })), null);
  const here = host([{}]);
  here.context.model.readOnly = true;
  assert.equal((await emit(model(here), null, "a")).why, "read-only");
});

test("the theme is the notebook's own", () => {
  document.body.dataset.jpThemeLight = "false";
  assert.equal(isDark(), true);
  document.body.dataset.jpThemeLight = "true";
  assert.equal(isDark(), false);
});
