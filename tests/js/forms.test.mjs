// Forms are drawn from fields; what was entered comes back with the right type.

import assert from "node:assert/strict";
import { test } from "node:test";
import { page, soon, SOURCE } from "./page.mjs";

page();
const { form } = await import(new URL("forms.js", SOURCE));

const options = (more = {}) => ({
  changed: () => {}, signal: new AbortController().signal, find: async () => [], pick: () => {}, ...more,
});

test("defaults come back with their types", () => {
  const made = form([
    { name: "new", type: "code", default: "nn.ReLU()", choices: ["nn.ReLU()", "nn.GELU()"] },
    { name: "n", type: "int", default: 4 },
    { name: "how", type: "choice", default: "zero", choices: ["new", "zero"] },
    { name: "mode", type: "choice", default: 2, choices: [{ value: 1, label: "one" }, { value: 2, label: "two" }] },
    { name: "keep", type: "bool", default: true },
    { name: "at", type: "node", default: "layer1" },
    { name: "note", type: "text", default: "" },
    { name: "what", type: "something new", default: "text" },
  ], options());
  assert.deepEqual(made.read(), {
    new: "nn.ReLU()", n: 4, how: "zero", mode: 2, keep: true, at: "layer1", what: "text",
  });
});

test("a suggestion fills the field and tells", () => {
  let told = 0;
  const made = form([{ name: "new", type: "code", default: "a", choices: ["a", "nn.GELU()"] }],
    options({ changed: () => told++ }));
  document.body.append(made.el);
  made.el.querySelectorAll("button")[1].click();
  assert.deepEqual([made.read(), told], [{ new: "nn.GELU()" }, 1]);
});

test("a place can be picked in the picture", () => {
  const made = form([{ name: "at", type: "node" }], options({ pick: (done) => done("layer2.0") }));
  assert.deepEqual(made.read(), {});
  made.el.querySelector("button").click();
  assert.deepEqual(made.read(), { at: "layer2.0" });
});

test("a place is completed", async () => {
  const made = form([{ name: "at", type: "node" }], options({ find: async (query) => [`${query}1`] }));
  const input = made.el.querySelector("input");
  input.value = "lay";
  input.dispatchEvent(new Event("input"));
  await soon(5);
  assert.equal(made.el.querySelector("option").value, "lay1");
});

test("a signal that ends takes the listeners along", () => {
  const controller = new AbortController();
  let told = 0;
  const made = form([{ name: "n", type: "int", default: 1 }],
    options({ signal: controller.signal, changed: () => told++ }));
  const input = made.el.querySelector("input");
  input.dispatchEvent(new Event("input"));
  controller.abort();
  input.dispatchEvent(new Event("input"));
  assert.equal(told, 1);
});
