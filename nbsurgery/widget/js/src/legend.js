// @ts-check
// What the colours mean, for those that the picture has.

import { h } from "./dom.js";

/** @type {Record<string, string>} */
const WORDS = {
  conv: "convolution", linear: "linear, product", norm: "normalization", act: "activation",
  pool: "pooling, resizing", attn: "attention", merge: "addition, joining", shape: "shape only",
  drop: "dropout, identity", embed: "embedding", other: "other",
};

/**
 * @param {import("./scene.js").Painter} painter
 * @returns {HTMLElement}
 */
export function legend(painter) {
  const rows = painter.order.filter((item) => item.kind === "row");
  const found = new Set(rows.map((item) => item.data.family));
  const entries = Object.entries(WORDS).filter(([family]) => found.has(family)).map(([family, word]) =>
    h("li", {}, h("i", { "data-family": family }), word));
  if (painter.svg.querySelector(".nbs-skip")) entries.push(h("li", {}, h("i", { class: "nbs-legend-skip" }), "skip connection"));
  return h("ul", { class: "nbs-legend", "aria-label": "Colours" }, ...entries);
}
