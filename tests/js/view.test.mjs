// A whole view in a made-up page: select, operate, undo, and leave nothing behind.

import assert from "node:assert/strict";
import { test } from "node:test";
import { host, page, scene, shown, soon, SOURCE, widget } from "./page.mjs";

const dom = page();
const { default: front } = await import(new URL("index.js", SOURCE));

const OFFER = {
  operation: "replace", label: "Replace", group: "Change", count: 1, note: "", arguments: { where: "b" },
  fields: [{ name: "new", label: "New", type: "code", default: "nn.GELU()", choices: [], help: "" }],
};

let ids = 0;
function setup(answers = {}, state = {}) {
  const id = `w${++ids}`;
  const manager = host([{ outputs: [shown(id)] }]);
  const model = widget({
    _widget_id: id, _cell_id: "", _scene: scene(), selection: [], code: "# nothing\n", steps: [], report: {},
    _can: {}, _view: "after", theme: "light", ...state,
  }, manager, {
    facts: ({ names }) => ({ title: names[0] ?? "Net", type: "Conv2d", rows: [{ label: "Read by", value: "", links: [{ text: "b", name: "b" }] }], source: null }),
    offers: [OFFER], preview: { count: 1, text: "1 place", places: ["b"] }, apply: {}, toggle: {}, expand_to: {},
    find: ["a", "b"], undo: {}, redo: {}, ...answers,
  });
  const el = document.createElement("div");
  document.body.append(el);
  const close = front.render({ model, el });
  return { model, el, close, manager, $: (selector) => el.querySelector(selector), $$: (selector) => [...el.querySelectorAll(selector)] };
}
const methods = (model) => model.sent.map((message) => message.method);
const click = (target, more = {}) => target.dispatchEvent(new dom.window.MouseEvent("click", { bubbles: true, ...more }));
const key = (target, name, more = {}) => target.dispatchEvent(new dom.window.KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));

test("a click selects, shift adds, a box means all that it stands for, the ground means nothing", async () => {
  const { model, $, close } = setup();
  click($('[data-name="a"]'));
  assert.deepEqual(model.get("selection"), ["a"]);
  click($('[data-name="block"]'), { shiftKey: true });
  assert.deepEqual(model.get("selection"), ["a", "block", "block2"]);
  click($('[data-name="a"]'), { shiftKey: true });
  assert.deepEqual(model.get("selection"), ["block", "block2"]);
  assert.ok($(".nbs-box").classList.contains("nbs-selected"));
  click($(".nbs-canvas"));
  assert.deepEqual(model.get("selection"), []);
  assert.equal(model.saved, 4);
  close();
});

test("a selection made in Python shows", () => {
  const { model, $, close } = setup();
  model.set("selection", ["b"]);
  assert.ok($('[data-name="b"]').classList.contains("nbs-selected"));
  close();
});

test("facts and operations follow the selection, a link leads on", async () => {
  const { model, $, close } = setup();
  click($('[data-name="a"]'));
  await soon(60);
  assert.equal($(".nbs-head-line h3").textContent, "a");
  assert.equal($(".nbs-offer").textContent, "Replace");
  click($(".nbs-link"));
  assert.deepEqual(model.get("selection"), ["b"]);
  close();
});

test("an operation: preview first, then applied with its form's values", async () => {
  const { model, $, close } = setup();
  click($('[data-name="b"]'));
  await soon(60);
  click($(".nbs-offer"));
  await soon(5);
  assert.equal($(".nbs-preview").textContent, "1 place");
  assert.ok($('[data-name="b"]').classList.contains("nbs-touched"));
  $("textarea").value = "nn.SiLU()";
  click($(".nbs-apply"));
  await soon(5);
  assert.deepEqual(model.sent.at(-1).params, { operation: "replace", arguments: { where: "b", new: "nn.SiLU()" } });
  assert.equal($(".nbs-form"), null);
  close();
});

test("a refusal is shown in the form, in words, and nothing is lost", async () => {
  const { $, close } = setup({ apply: () => { throw new Error("'boom' does not evaluate"); } });
  click($('[data-name="b"]'));
  await soon(60);
  click($(".nbs-offer"));
  $("textarea").value = "boom";
  click($(".nbs-apply"));
  await soon(5);
  assert.match($(".nbs-problem").textContent, /'boom' does not evaluate/);
  assert.equal($("textarea").value, "boom");
  assert.equal($(".nbs-apply").disabled, false);
  close();
});

test("the offers of an old selection go at once", async () => {
  const { $, close } = setup();
  click($('[data-name="b"]'));
  await soon(60);
  assert.ok($(".nbs-offer"));
  click($('[data-name="a"]'));
  assert.equal($(".nbs-offer"), null);
  close();
});

test("what is still being tried cannot be pressed; the buttons stay where they are", async () => {
  const CUT = { ...OFFER, operation: "cut", label: "Cut" };
  const parts = [
    [{ ...OFFER, pending: true }, { ...CUT, pending: true }],
    [OFFER, { ...CUT, pending: true }],
    [OFFER],
  ];
  let go = () => {};
  const { model, $, $$, close } = setup({
    offers: () => new Promise((done) => {
      go = () => done(parts.shift());
    }),
  });
  click($('[data-name="b"]'));
  await soon(60);
  go();
  await soon(5);
  const [replace] = $$(".nbs-offer");
  assert.deepEqual($$(".nbs-offer").map((b) => b.disabled), [true, true]);
  go();
  await soon(5);
  assert.deepEqual($$(".nbs-offer").map((b) => b.disabled), [false, true]);
  go();
  await soon(5);
  assert.deepEqual($$(".nbs-offer"), [replace]);
  assert.equal(methods(model).filter((m) => m === "offers").length, 3);
  close();
});

test("after an edit the offers of the model before it are gone until the new ones are there", async () => {
  const { model, $, close } = setup();
  click($('[data-name="b"]'));
  await soon(60);
  assert.ok($(".nbs-offer"));
  model.set("steps", TWO);
  assert.equal($(".nbs-offer"), null);
  assert.match($(".nbs-menu").textContent, /Trying/);
  await soon(60);
  assert.ok($(".nbs-offer"));
  close();
});

test("a restart of the kernel is told before anything is asked, and greys what needs it", async () => {
  const { model, manager, $, close } = setup();
  click($('[data-name="b"]'));
  await soon(60);
  const whole = { comm_live: false };
  manager.get_model = async () => whole;
  model.emit("comm_live_update");
  await soon(5);
  assert.match($(".nbs-banner").textContent, /restarted.*run the cells up to this one again/);
  assert.equal($(".nbs-banner").hidden, false);
  assert.equal($(".nbs-offer"), null);
  assert.ok($(".nbs-root").classList.contains("nbs-gone"));
  const sent = model.sent.length;
  click($('[data-name="a"]'));
  await soon(60);
  assert.equal(model.sent.length, sent);
  whole.comm_live = true; // it was the connection only
  model.emit("comm_live_update");
  await soon(60);
  assert.ok($(".nbs-banner").hidden && $(".nbs-offer"));
  close();
  assert.deepEqual(model.handlers.get("comm_live_update"), []);
});

test("the sign of a module opens it, a double click too", async () => {
  const { model, $, close } = setup();
  click($(".nbs-box .nbs-chip"));
  $(".nbs-box .nbs-back").dispatchEvent(new dom.window.MouseEvent("dblclick", { bubbles: true }));
  const asked = model.sent.filter((m) => m.method === "toggle");
  assert.deepEqual(asked.map((m) => m.params.scope), ["block", "block"]);
  assert.deepEqual(model.get("selection"), []);
  close();
});

test("keys walk, open, search, undo and redo", async () => {
  const { model, $, close } = setup();
  const canvas = $(".nbs-canvas");
  key(canvas, "ArrowDown");
  assert.deepEqual(model.get("selection"), ["x"]);
  key(canvas, "ArrowDown");
  key(canvas, "ArrowDown");
  key(canvas, "ArrowDown");
  assert.deepEqual(model.get("selection"), ["block", "block2"]);
  key(canvas, "ArrowRight");
  assert.equal(model.sent.at(-1).method, "toggle");
  key(canvas, "ArrowUp");
  assert.deepEqual(model.get("selection"), ["b"]);
  key(canvas, "z", { ctrlKey: true });
  key(canvas, "Z", { ctrlKey: true, shiftKey: true });
  assert.deepEqual(methods(model).slice(-2), ["undo", "redo"]);
  key(canvas, "/");
  assert.equal(document.activeElement, $(".nbs-search"));
  key(canvas, "Escape");
  assert.deepEqual(model.get("selection"), []);
  close();
});

test("keys do not reach the notebook", () => {
  const { $, close } = setup();
  let heard = 0;
  const listen = () => heard++;
  document.body.addEventListener("keydown", listen);
  key($(".nbs-canvas"), "d");
  document.body.removeEventListener("keydown", listen);
  assert.equal(heard, 0);
  close();
});

test("search marks what it finds and walks through it", async () => {
  const { model, $, $$, close } = setup();
  $(".nbs-search").value = "conv";
  $(".nbs-search").dispatchEvent(new dom.window.Event("input"));
  await soon(5);
  assert.deepEqual($$(".nbs-found").map((e) => e.dataset.name), ["a", "b"]);
  key($(".nbs-search"), "Enter");
  key($(".nbs-search"), "Enter");
  assert.deepEqual(model.get("selection"), ["b"]);
  assert.equal($(".nbs-hits").textContent, "2 / 2");
  close();
});

test("hovering lights a value's whole way", () => {
  const { $, $$, close } = setup();
  $(".nbs-edge").dispatchEvent(new dom.window.MouseEvent("pointerover", { bubbles: true }));
  assert.equal($$(".nbs-lit").length, 2);
  assert.equal($(".nbs-tip").textContent, "3×4×4");
  $('[data-name="b"] .nbs-hit').dispatchEvent(new dom.window.MouseEvent("pointerover", { bubbles: true }));
  assert.deepEqual($$(".nbs-lit").map((e) => e.dataset.value), ["#b"]);
  close();
});

test("steps: state, reason, switch and drop", async () => {
  const steps = [
    { uid: 1, operation: "cut", text: "cut after a", detail: "", enabled: true, state: "ok", reason: "" },
    { uid: 2, operation: "replace", text: "replace b", detail: "", enabled: true, state: "failed", reason: "b is gone" },
  ];
  const { model, $$, $, close } = setup({ toggle_step: {}, drop_step: {} }, { steps, _can: { undo: true, redo: false } });
  assert.deepEqual($$(".nbs-step").map((e) => e.className), ["nbs-step nbs-step-ok", "nbs-step nbs-step-failed"]);
  assert.match($$(".nbs-step")[1].textContent, /b is gone/);
  assert.deepEqual([$(".nbs-undo").disabled, $(".nbs-redo").disabled], [false, true]);
  $$(".nbs-step input")[0].click();
  click($$(".nbs-drop")[1]);
  assert.deepEqual(model.sent.slice(-2).map((m) => [m.method, m.params.uid]), [["toggle_step", 1], ["drop_step", 2]]);
  close();
});

test("code and report are shown as they come, the grave first", () => {
  const { model, $, $$, close } = setup({}, { steps: [{ uid: 1, text: "s", enabled: true, state: "ok" }] });
  model.set("code", "model.fc = nn.Linear(1, '<b>')\n");
  assert.equal($(".nbs-code code").textContent, "model.fc = nn.Linear(1, '<b>')");
  model.set("report", { findings: [{ severity: "ok", text: "fine" }, { severity: "error", text: "<i>bad" }], facts: [{ label: "Parameters", before: "1", after: "2" }] });
  assert.deepEqual($$(".nbs-finding span").map((e) => e.textContent), ["<i>bad", "fine"]);
  assert.equal($(".nbs-mood").textContent, "1 problem");
  assert.match($(".nbs-report table").textContent, /Parameters12/);
  close();
});

test("Emit writes the next cell and says so; without a notebook there is Copy only", async () => {
  const { $, manager, close } = setup();
  click($(".nbs-emit"));
  await soon(10);
  assert.deepEqual(manager.sources(), ["", "# nothing"]);
  assert.match($(".nbs-toast").textContent, /new cell below/);
  close();
  const model = widget({ _widget_id: "alone", _scene: scene(), steps: [], selection: [] }, undefined, {});
  const el = document.createElement("div");
  const end = front.render({ model, el });
  assert.equal(el.querySelector(".nbs-emit").hidden, true);
  end();
});

test("Copy takes the code, or says why it cannot", async () => {
  const { $, close } = setup();
  let copied = null;
  Object.defineProperty(globalThis, "navigator", { value: { clipboard: { writeText: async (text) => { copied = text; } } }, configurable: true });
  click($(".nbs-copy"));
  await soon(5);
  assert.equal(copied, "# nothing");
  assert.equal($(".nbs-toast").textContent, "Copied.");
  globalThis.navigator.clipboard.writeText = async () => { throw new Error("denied"); };
  click($(".nbs-copy"));
  await soon(5);
  assert.match($(".nbs-toast").textContent, /refuses/);
  close();
});

test("a place asked for by a form is picked in the picture, Esc cancels", async () => {
  const offer = { operation: "connect", label: "Connect", fields: [{ name: "into", label: "Into", type: "node", default: "" }], arguments: { source: "a" } };
  const { model, $, close } = setup({ offers: [offer] });
  click($('[data-name="a"]'));
  await soon(60);
  click($(".nbs-offer"));
  click($(".nbs-pair button"));
  assert.ok($(".nbs-canvas").classList.contains("nbs-picking"));
  click($('[data-name="b"]'));
  assert.equal($(".nbs-pair input").value, "b");
  assert.deepEqual(model.get("selection"), ["a"]);
  click($(".nbs-pair button"));
  key($(".nbs-canvas"), "Escape");
  assert.equal($(".nbs-canvas").classList.contains("nbs-picking"), false);
  assert.ok($(".nbs-form"), "the form stays");
  close();
});

test("before, after and the parts of a split can be looked at", async () => {
  const { model, $, $$, close } = setup({ view: {} }, { steps: [{ uid: 1, text: "s", enabled: true, state: "ok" }], _views: ["before", "head", "tail"], _view: "head" });
  assert.deepEqual($$(".nbs-looks button").map((e) => [e.textContent, e.getAttribute("aria-pressed")]), [["Before", "false"], ["head", "true"], ["tail", "false"]]);
  click($$(".nbs-looks button")[2]);
  assert.deepEqual(model.sent.at(-1).params, { which: "tail" });
  model.set("_view", "before");
  model.set("selection", ["a"]);
  await soon(60);
  assert.equal($(".nbs-offer"), null);
  assert.match($(".nbs-hint").textContent, /as it was/);
  close();
});

test("the style of the code can be chosen, and is shown as Python has it", async () => {
  const { model, $, $$, close } = setup({ style: {} }, { _style: { in_place: false, function: false, classes: "auto" } });
  const [place, form, classes] = $$(".nbs-tastes select");
  const shown = () => [place, form, classes].map((e) => e.selectedIndex);
  assert.deepEqual(shown(), [1, 0, 0]);
  classes.selectedIndex = 1;
  classes.dispatchEvent(new dom.window.Event("change"));
  assert.deepEqual([model.sent.at(-1).method, model.sent.at(-1).params], ["style", { classes: "subclass" }]);
  await soon(5);
  assert.deepEqual(shown(), [1, 0, 0], "until Python says so, it is as it was");
  model.set("_style", { in_place: false, function: true, classes: "subclass" });
  assert.deepEqual(shown(), [1, 1, 1]);
  $(".nbs-style").open = true;
  key($(".nbs-tastes select"), "Escape");
  assert.equal($(".nbs-style").open, false);
  close();
});

const TWO = [1, 2, 3].map((uid) => ({ uid, operation: "replace", text: `step ${uid}`, detail: "", enabled: true, state: "ok", reason: "" }));

test("a step's form opens again, filled in, and changes that step", async () => {
  const form = {
    operation: "replace", label: "replace", uid: 2, arguments: {},
    fields: [{ name: "where", label: "Where", type: "node", default: "b" }, { name: "new", label: "New", type: "code", default: "nn.GELU()" }],
  };
  const { model, $, $$, close } = setup({ step_form: form, change_step: {}, preview: { count: 1, text: "1 place", places: ["b"] } }, { steps: TWO });
  click($$(".nbs-step-text")[1]);
  await soon(40);
  assert.match($(".nbs-form h4").textContent, /Step 2: replace/);
  assert.deepEqual([$(".nbs-form input").value, $(".nbs-form textarea").value], ["b", "nn.GELU()"]);
  assert.equal(model.sent.findLast((m) => m.method === "preview").params.uid, 2);
  $(".nbs-form textarea").value = "";
  click($(".nbs-apply"));
  assert.deepEqual(model.sent.findLast((m) => m.method === "change_step").params, { uid: 2, arguments: { where: "b", new: null } });
  await soon(40);
  assert.equal($(".nbs-form"), null);
  close();
});

test("a form that is being filled in stays when the steps change beside it", async () => {
  const offer = { operation: "replace", label: "Replace", fields: [{ name: "new", label: "New", type: "code", default: "nn.GELU()" }], arguments: {} };
  const { model, $, close } = setup({ offers: [offer], preview: { count: 1, text: "", places: [] } }, { steps: TWO });
  click($('[data-name="a"]'));
  await soon(80);
  click($(".nbs-offer"));
  $(".nbs-form textarea").value = "nn.SiLU()";
  model.set("steps", TWO.slice(1));
  await soon(80);
  assert.equal($(".nbs-form textarea").value, "nn.SiLU()");
  click($('[data-name="b"]'));
  await soon(80);
  assert.equal($(".nbs-form"), null, "another selection has other operations");
  close();
});

test("steps are moved by keys, which stay on the step that they moved", async () => {
  const { model, $$, close } = setup({ move_step: {} }, { steps: TWO });
  $$(".nbs-grip")[0].focus();
  key($$(".nbs-grip")[0], "ArrowUp");
  key($$(".nbs-grip")[0], "ArrowDown");
  key($$(".nbs-grip")[0], "ArrowDown");
  const moves = model.sent.filter((m) => m.method === "move_step").map((m) => m.params);
  assert.deepEqual(moves, [{ uid: 1, to: 1 }], "the first cannot go up; a second press waits for the first");
  model.set("steps", [TWO[1], TWO[0], TWO[2]]);
  assert.equal(document.activeElement, $$(".nbs-grip")[1]);
  close();
});

test("steps are moved by dragging; a drag is no click, Esc takes it back", async () => {
  const { model, $$, close } = setup({ move_step: {}, step_form: {} }, { steps: TWO });
  const place = () => $$(".nbs-step").forEach((li, i) => { li.getBoundingClientRect = () => ({ top: 30 * i, height: 30 }); });
  place();
  const at = (type, el, y) => el.dispatchEvent(new dom.window.MouseEvent(type, { bubbles: true, clientY: y }));
  const text = $$(".nbs-step-text")[0];
  const drag = () => {
    at("pointerdown", text, 15);
    at("pointermove", document, 17);
    assert.equal($$(".nbs-dragging").length, 0, "not yet far enough");
    at("pointermove", document, 80);
    assert.ok($$(".nbs-step")[0].classList.contains("nbs-dragging"));
    assert.ok($$(".nbs-step")[2].classList.contains("nbs-line-below"));
  };
  drag();
  document.dispatchEvent(new dom.window.KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  assert.equal($$(".nbs-dragging, .nbs-line-below").length, 0);
  at("pointerup", document, 80);
  drag();
  at("pointerup", document, 80);
  click(text);
  assert.deepEqual(model.sent.filter((m) => m.method !== "facts").map((m) => [m.method, m.params]), [["move_step", { uid: 1, to: 2 }]]);
  close();
});

test("the keys are told on demand", () => {
  const { $, close } = setup();
  click($(".nbs-keys"));
  assert.equal($(".nbs-help-card").hidden, false);
  key($(".nbs-canvas"), "Escape");
  assert.equal($(".nbs-help-card").hidden, true);
  close();
});

test("two views of one widget show the same; closing one leaves the other", async () => {
  const { model, $, close } = setup();
  const el = document.createElement("div");
  document.body.append(el);
  const closeSecond = front.render({ model, el });
  click($('[data-name="a"]'));
  assert.ok(el.querySelector('[data-name="a"]').classList.contains("nbs-selected"));
  close();
  model.set("selection", ["b"]);
  assert.ok(el.querySelector('[data-name="b"]').classList.contains("nbs-selected"));
  closeSecond();
});

test("a closed view leaves no listener, no element, no timer that asks", async () => {
  const { model, el, close } = setup();
  close();
  assert.equal(el.childElementCount, 0);
  for (const [name, list] of model.handlers) assert.deepEqual(list, [], name);
  const sent = model.sent.length;
  await soon(80);
  assert.equal(model.sent.length, sent);
});

test("the variable was changed elsewhere: said, with both ways on", async () => {
  const { model, $, close } = setup({ rebase: {} }, { _notice: { kind: "changed", text: "it is edited already" } });
  assert.match($(".nbs-notice").textContent, /it is edited already/);
  click($(".nbs-rebase"));
  assert.equal(model.sent.at(-1).method, "rebase");
  click($(".nbs-keep"));
  assert.equal($(".nbs-notice").hidden, true);
  close();
});

test("the full check: progress, stop, and its verdict beside the code that was emitted", async () => {
  const steps = [{ uid: 1, text: "s", enabled: true, state: "ok" }];
  const { model, $, manager, close } = setup({ verify: {}, stop_verify: {} }, { steps });
  click($(".nbs-emit"));
  await soon(60);
  assert.deepEqual(manager.sources(), ["", "# nothing"]);
  assert.deepEqual(model.sent.findLast((m) => m.method === "verify").params, { again: false });
  model.set("_checking", { state: "running", name: "train mode", number: 4, of: 9 });
  assert.equal($(".nbs-mood").textContent, "checking train mode, 4 of 9");
  assert.match($(".nbs-fate").textContent, /cell below; checking train mode, 4 of 9/);
  model.set("_checking", { state: "running", name: "export", number: 8, of: 10, holds: true });
  assert.equal($(".nbs-mood").textContent, "checking export, 8 of 10; it holds the kernel for some seconds");
  assert.equal($(".nbs-verify").textContent, "Stop");
  click($(".nbs-verify"));
  assert.ok(model.sent.some((m) => m.method === "stop_verify"));
  model.set("report", { findings: [{ severity: "error", text: "training fails" }] });
  model.set("_checking", { state: "done" });
  assert.match($(".nbs-fate").textContent, /Don’t rely on the cell below, 1 problem: training fails/);
  assert.equal($(".nbs-fate").dataset.kind, "error");
  assert.equal($(".nbs-verify").textContent, "Verify");
  model.set("code", "other = 1");
  assert.equal($(".nbs-fate").hidden, true, "other code has not been emitted");
  close();
});

test("Emit with nothing to write says what to do, and makes no cell", async () => {
  const { $, manager, close } = setup({}, { _can: { undo: false, redo: false, emit: false } });
  click($(".nbs-emit"));
  await soon(60);
  assert.deepEqual(manager.sources(), [""]);
  assert.match($(".nbs-toast").textContent, /nothing to emit yet/);
  close();
});
