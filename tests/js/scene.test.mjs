// Drawing: every name and edge is there, elements are kept, text is text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { page, scene, SOURCE } from "./page.mjs";

page();
const { Painter } = await import(new URL("scene.js", SOURCE));

test("everything in the scene is drawn under its name and key", () => {
  const painter = new Painter();
  painter.draw(scene());
  for (const name of ["x", "a", "b", "block", "block2"]) assert.ok(painter.find(name), name);
  assert.equal(painter.svg.querySelectorAll(".nbs-edge").length, 3);
  assert.deepEqual(painter.values.get("#x").map((e) => e.classList.contains("nbs-skip")), [false, true]);
  assert.deepEqual(painter.order.map((item) => item.name), ["", "x", "a", "b", "block"]);
  const row = painter.find("b");
  assert.deepEqual([row.x, row.y], [10, 76]); // its card's place and its own
  assert.match(row.el.textContent, /bConv2d.*1,024.*8×4×4/);
  assert.match(painter.find("block").el.textContent, /×2/);
  assert.match(painter.find("block").el.querySelector(".nbs-badge title").textContent, /cannot be rewritten/);
});

test("opening keeps the elements that stay and removes those that go", () => {
  const painter = new Painter();
  painter.draw(scene());
  const kept = painter.find("a").el;
  const gone = painter.find("block").el;
  painter.draw(scene(true));
  assert.equal(painter.find("a").el, kept);
  assert.equal(gone.isConnected || painter.svg.contains(gone), false);
  assert.equal(painter.find("block").kind, "group");
  assert.equal(painter.find("block.conv").y, 160);
  assert.equal(painter.find("block2"), undefined);
  painter.draw(scene());
  assert.equal(painter.find("block").kind, "box");
  assert.equal(painter.svg.querySelectorAll(".nbs-edge").length, 3);
});

test("names are data: markup in them is shown, not obeyed", () => {
  const picture = scene();
  const evil = "<img src=x onerror=alert(1)>\"]'";
  picture.group.items[1].rows[0] = { ...picture.group.items[1].rows[0], node: evil, name: evil, type: evil };
  const painter = new Painter();
  painter.draw(picture);
  assert.equal(painter.svg.querySelector("img"), null);
  assert.equal(painter.find(evil).el.querySelector(".nbs-name").textContent, evil);
});

test("an edge that is gone goes, one that changes is kept", () => {
  const painter = new Painter();
  painter.draw(scene());
  const first = painter.values.get("#b")[0];
  const next = scene();
  next.group.edges = [{ ...next.group.edges[1], d: "M1,1V9" }];
  painter.draw(next);
  assert.equal(painter.svg.querySelectorAll(".nbs-edge").length, 1);
  assert.equal(painter.values.get("#b")[0], first);
  assert.equal(first.getAttribute("d"), "M1,1V9");
  assert.equal(painter.values.get("#x"), undefined);
});

test("edges left out stand behind a chip", () => {
  const picture = scene();
  picture.group.items[1].more = { label: "+3", x: 5, y: 5, w: 20, h: 14, edges: [{ d: "M0,0V1", value: "#x" }] };
  const painter = new Painter();
  painter.draw(picture);
  assert.equal(painter.svg.querySelector(".nbs-more text").textContent, "+3");
  painter.draw(scene());
  assert.equal(painter.svg.querySelector(".nbs-more"), null);
});

test("two pictures on a page have ids of their own", () => {
  const [one, two] = [new Painter(), new Painter()];
  const ids = [one, two].flatMap((p) => [...p.svg.querySelectorAll("marker")].map((m) => m.id));
  assert.equal(new Set(ids).size, 6);
});

test("a difference and a badge come and go", () => {
  const painter = new Painter();
  const picture = scene();
  picture.group.items[1].rows[1].diff = "added";
  painter.draw(picture);
  assert.equal(painter.find("b").el.dataset.diff, "added");
  const next = scene();
  next.group.items[2].badge = null;
  painter.draw(next);
  assert.equal(painter.find("b").el.dataset.diff, undefined);
  assert.equal(painter.find("block").el.querySelector(".nbs-badge"), null);
});
