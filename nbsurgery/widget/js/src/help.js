// @ts-check
// The keys and gestures, on demand.

import { h } from "./dom.js";

const ROWS = [
  ["Click", "select; with Shift: more"],
  ["Double click, ›", "open or close a module; with Alt: all below"],
  ["Drag", "move the picture"],
  ["Ctrl + wheel, pinch", "zoom"],
  ["↑ ↓", "walk through the picture"],
  ["← →", "close, open, go out and in"],
  ["Enter", "to the operations"],
  ["/", "search; Enter goes to the next"],
  ["+ − F", "zoom, show all"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
  ["A step", "click: change it; drag, or ↑ ↓ on its handle: move it"],
  ["Esc", "cancel, select nothing"],
];

/** @returns {HTMLElement} */
export function help() {
  return h("div", { class: "nbs-help-card nbs-overlay", hidden: true, role: "dialog", "aria-label": "Keys" },
    h("dl", {}, ...ROWS.flatMap(([keys, what]) => [h("dt", {}, keys), h("dd", {}, what)])));
}
