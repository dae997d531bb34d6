// Every request ends: with a result, an error in words, or at its time limit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { page, soon, SOURCE, widget } from "./page.mjs";

page();
const { connect, save } = await import(new URL("protocol.js", SOURCE));

test("a result and an error", async () => {
  const model = widget({}, null, {
    good: (params) => params.n + 1,
    bad: () => { throw new TypeError("no such layer"); },
  });
  const link = connect(model);
  assert.equal(await link.ask("good", { n: 1 }), 2);
  await assert.rejects(link.ask("bad"), { message: "no such layer", type: "TypeError" });
});

test("replies find their request, in any order and beside other views", async () => {
  const model = widget({}, null);
  const [one, two] = [connect(model), connect(model)];
  const first = one.ask("a");
  const second = one.ask("b");
  const other = two.ask("c");
  const [a, b, c] = model.sent.map((message) => message.id);
  model.emit("msg:custom", { id: c, ok: true, result: "c" });
  model.emit("msg:custom", { id: b, ok: true, result: "b" });
  model.emit("msg:custom", { id: a, ok: true, result: "a" });
  model.emit("msg:custom", { id: a, ok: true, result: "twice" });
  model.emit("msg:custom", null);
  assert.deepEqual(await Promise.all([first, second, other]), ["a", "b", "c"]);
});

test("no answer ends at the time limit", async () => {
  const link = connect(widget({}, null));
  await assert.rejects(link.ask("silence", {}, { timeout: 0.02 }), { type: "Timeout" });
});

test("a kernel that is gone is said in words", async () => {
  const model = widget({}, null);
  model.send = () => { throw new Error("Cannot send"); };
  let gone = false;
  const link = connect(model, { onGone: (state) => { gone = state; } });
  await assert.rejects(link.ask("facts"), { type: "KernelGone", message: /restarted/ });
  assert.equal(gone, true);
  model.send = () => Promise.reject(new Error("disposed"));
  await assert.rejects(link.ask("facts"), { type: "KernelGone" });
});

test("the first answer after a loss takes the word back", async () => {
  const model = widget({}, null, { x: 1 });
  const said = [];
  const link = connect(model, { onGone: (state) => said.push(state) });
  const { send } = model;
  model.send = () => { throw new Error("Cannot send"); };
  await assert.rejects(link.ask("x"), { type: "KernelGone" });
  model.send = send;
  await link.ask("x");
  assert.deepEqual(said, [true, false]);
});

test("when the host has lost the kernel, what waits ends and nothing more is sent", async () => {
  const model = widget({}, null, { x: 1 });
  const said = [];
  const link = connect(model, { onGone: (state) => said.push(state) });
  const waiting = link.ask("silence");
  link.lose(true);
  await assert.rejects(waiting, { type: "KernelGone" });
  await assert.rejects(link.ask("x"), { type: "KernelGone" });
  assert.equal(model.sent.length, 1);
  link.lose(false);
  assert.equal(await link.ask("x"), 1);
  assert.deepEqual(said, [true, false]);
});

test("closing ends what waits and hears no more", async () => {
  const model = widget({}, null);
  const link = connect(model);
  const waiting = link.ask("x");
  link.close();
  await assert.rejects(waiting, { type: "Closed" });
  assert.deepEqual(model.handlers.get("msg:custom"), []);
});

test("the number of open requests is told", async () => {
  const counts = [];
  const link = connect(widget({}, null, { x: 1 }), { onCount: (n) => counts.push(n) });
  await Promise.all([link.ask("x"), link.ask("x")]);
  assert.deepEqual(counts, [1, 2, 1, 0]);
});

test("traits without a kernel stay in the page", () => {
  save({ save_changes() { throw new Error("Cannot send"); } });
});
