// @ts-check
// Draws a scene: keyed SVG groups that are kept and moved when the next scene comes, so that CSS can animate.

import { s, set, text } from "./dom.js";

/**
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Group} Group
 * @typedef {{key: string, kind: string, name: string, data: any, el: SVGGElement, parts: any,
 *   parent: string | null, x: number, y: number, w: number, h: number, order: number}} Shown
 *   One drawn thing; x and y count from the picture's corner.
 */

const STACK = 4; // how far the sheet under a closed module peeks out

let views = 0;

export class Painter {
  constructor() {
    const tag = ++views; // ids are of the page, two pictures must not share them
    /** @type {(name: string) => string} */
    this.id = (name) => `nbs-${name}-${tag}`;
    this.svg = s("svg", { class: "nbs-scene", role: "group", "aria-label": "Model" });
    const arrows = ["edge", "skip", "lit"].map((name) =>
      s("marker", {
        id: this.id(name), class: `nbs-arrow nbs-arrow-${name}`, viewBox: "0 0 8 8", refX: 7, refY: 4,
        markerWidth: name === "edge" ? 6.5 : 7.5, markerHeight: name === "edge" ? 6.5 : 7.5,
        orient: "auto", markerUnits: "userSpaceOnUse",
      }, s("path", { d: "M0,.6L8,4L0,7.4z" })));
    this.svg.append(s("defs", {}, ...arrows));
    /** @type {Map<string, Shown>} */
    this.shown = new Map();
    /** @type {Map<string, Shown[]>} names and scope keys to what shows them */
    this.names = new Map();
    /** @type {Map<string, SVGPathElement[]>} values to their edges */
    this.values = new Map();
    /** @type {Shown[]} what can be selected, in reading order */
    this.order = [];
  }

  /** @param {Scene} scene */
  draw(scene) {
    const first = this.shown.size === 0;
    this.svg.classList.toggle("nbs-still", first);
    set(this.svg, { width: scene.width, height: scene.height });
    this.before = this.shown;
    this.shown = new Map();
    this.names = new Map();
    this.values = new Map();
    this.order = [];
    const root = this.#group(scene.group, null, 0, 0);
    if (root.el.parentNode !== this.svg) this.svg.append(root.el);
    for (const [key, old] of this.before) if (!this.shown.has(key)) old.el.remove();
    this.before = undefined;
  }

  /** The first thing that shows a name or scope key. @param {string} name */
  find(name) {
    return this.names.get(name)?.[0];
  }

  /**
   * Registers a thing, with the element of the picture before where there was one of the same form.
   * @param {string} key
   * @param {string} kind
   * @param {string} name
   * @param {any} data
   * @param {string | null} parent
   * @param {number} x
   * @param {number} y
   * @param {() => {el: SVGGElement, parts: any}} make
   * @returns {Shown}
   */
  #keep(key, kind, name, data, parent, x, y, make) {
    const old = this.before?.get(key);
    const { el, parts } = old?.kind === kind ? old : make();
    if (old && old.el !== el) old.el.remove();
    const item = { key, kind, name, data, el, parts, parent, x, y, w: data.w, h: data.h, order: 0 };
    this.shown.set(key, item);
    if (kind !== "card") {
      item.order = this.order.push(item) - 1;
      for (const one of kind === "box" ? data.scopes : [name]) {
        const list = this.names.get(one) ?? [];
        list.push(item);
        this.names.set(one, list);
      }
    }
    el.dataset.key = key;
    if (kind !== "card") el.dataset.name = name;
    if (data.diff) el.dataset.diff = data.diff;
    else delete el.dataset.diff;
    return item;
  }

  /**
   * @param {Element} parent
   * @param {Shown[]} items
   */
  #arrange(parent, items) {
    items.forEach((item, i) => {
      if (parent.children[i] !== item.el) parent.insertBefore(item.el, parent.children[i] ?? null);
    });
  }

  /**
   * @param {Group} data
   * @param {string | null} parent
   * @param {number} x
   * @param {number} y
   */
  #group(data, parent, x, y) {
    const root = parent === null;
    const item = this.#keep(data.key, "group", data.scope, data, parent, x, y, () => {
      const parts = {
        back: s("rect", { class: "nbs-back", rx: 10, x: 0, y: 0 }),
        edges: s("g", { class: "nbs-edges" }),
        head: s("path", { class: "nbs-head" }),
        title: title(),
        items: s("g", { class: "nbs-items" }),
        outline: s("rect", { class: "nbs-outline", rx: 10, x: 0, y: 0 }),
      };
      const el = s("g", { class: "nbs-module module" }, parts.back, parts.edges, parts.head,
        parts.title.el, parts.items, parts.outline);
      return { el, parts };
    });
    const { el, parts } = item;
    if (!root) place(el, data.x, data.y);
    el.classList.toggle("nbs-root-group", root);
    el.dataset.depth = String(Math.min(data.depth, 4));
    const { w, h } = data;
    for (const part of [parts.back, parts.outline]) set(part, { width: w, height: h });
    if (!root) {
      const head = data.head - 2;
      const up = head - 10;
      set(parts.head, {
        d: `M0.5,${head}v${-up}a9.5,9.5 0 0 1 9.5,-9.5h${w - 20}a9.5,9.5 0 0 1 9.5,9.5v${up}z`,
      });
      fillTitle(parts.title, data, { open: true, right: w - 10, base: 15, left: 14 });
      badge(el, parts, data.badge, w - 4, 0);
    }
    this.#edges(item, data.edges ?? []);
    const children = data.items.map((child) => {
      if (child.kind === "group") return this.#group(child, data.key, x + child.x, y + child.y);
      if (child.kind === "card") return this.#card(child, data.key, x + child.x, y + child.y);
      if (child.kind === "box") return this.#box(child, data.key, x + child.x, y + child.y);
      return this.#pill(child, data.key, x + child.x, y + child.y);
    });
    this.#arrange(parts.items, children);
    this.#more(item, data.items);
    return item;
  }

  /**
   * Chips that stand for edges left out where too many meet; their ways show under the pointer.
   * @param {Shown} item
   * @param {import("./types.js").Item[]} items
   */
  #more(item, items) {
    const chips = items.flatMap((child) => (child.kind !== "group" && child.more ? [child.more] : []));
    item.parts.more?.remove();
    item.parts.more = null;
    if (!chips.length) return;
    item.parts.more = s("g", {}, ...chips.map((chip) => s("g", { class: "nbs-more" },
      ...chip.edges.map((edge) => s("path", { class: "nbs-edge", d: edge.d, "data-value": edge.value })),
      s("rect", { x: chip.x, y: chip.y, width: chip.w, height: chip.h, rx: 7 }),
      s("text", { x: chip.x + chip.w / 2, y: chip.y + 10.5, "text-anchor": "middle" }, chip.label))));
    item.el.insertBefore(item.parts.more, item.parts.outline);
  }

  /**
   * @param {Shown} item
   * @param {import("./types.js").Edge[]} edges
   */
  #edges(item, edges) {
    const layer = item.parts.edges;
    /** @type {Map<string, SVGPathElement>} */
    const old = item.parts.paths ?? new Map();
    const paths = new Map();
    for (const edge of [...edges].sort((a, b) => Number(a.skip ?? 0) - Number(b.skip ?? 0))) {
      const path = old.get(edge.key) ?? s("path", { class: "nbs-edge" });
      old.delete(edge.key);
      paths.set(edge.key, path);
      layer.append(path);
      if (path.hasAttribute("d") && form(path.getAttribute("d")) !== form(edge.d)) fade(path);
      set(path, { d: edge.d, "marker-end": edge.arrow ? `url(#${this.id(edge.skip ? "skip" : "edge")})` : null });
      path.classList.toggle("nbs-skip", Boolean(edge.skip));
      path.dataset.value = edge.value;
      path.dataset.shape = edge.shape ?? "";
      const list = this.values.get(edge.value) ?? [];
      list.push(path);
      this.values.set(edge.value, list);
    }
    for (const path of old.values()) path.remove();
    item.parts.paths = paths;
  }

  /**
   * @param {import("./types.js").Card} data
   * @param {string} parent
   * @param {number} x
   * @param {number} y
   */
  #card(data, parent, x, y) {
    const item = this.#keep(data.key, "card", "", data, parent, x, y, () => {
      const parts = { back: s("rect", { class: "nbs-back", rx: 7 }), rows: s("g") };
      return { el: s("g", { class: "nbs-card" }, parts.back, parts.rows), parts };
    });
    place(item.el, data.x, data.y);
    set(item.parts.back, { width: data.w, height: data.h });
    const rows = data.rows.map((row, i) =>
      this.#row(row, data, parent, x, y + row.y, { first: i === 0, last: i === data.rows.length - 1 }));
    this.#arrange(item.parts.rows, rows);
    return item;
  }

  /**
   * @param {import("./types.js").Row} row
   * @param {import("./types.js").Card} card
   * @param {string} parent
   * @param {number} x
   * @param {number} y
   * @param {{first: boolean, last: boolean}} where
   */
  #row(row, card, parent, x, y, where) {
    const data = { ...row, w: card.w };
    const item = this.#keep(row.key, "row", row.node, data, parent, x, y, () => {
      const parts = {
        hit: s("rect", { class: "nbs-hit", x: 0, y: 0 }),
        strip: s("path", { class: "nbs-strip" }),
        line: s("path", { class: "nbs-line" }),
        title: title(),
        shape: s("text", { class: "nbs-shape", "text-anchor": "end" }),
        outline: s("rect", { class: "nbs-outline", x: 0.5, y: 0.5 }),
      };
      const el = s("g", { class: "nbs-row" }, parts.hit, parts.line, parts.strip, parts.title.el,
        parts.shape, parts.outline);
      return { el, parts };
    });
    const { el, parts } = item;
    const { w } = card;
    place(el, 0, row.y);
    el.dataset.family = row.family;
    el.classList.toggle("nbs-failed", Boolean(row.failed));
    const a = where.first ? 7 : 0;
    const b = where.last ? 7 : 0;
    set(parts.hit, { width: w, height: row.h, rx: a || b ? 7 : 0 });
    set(parts.outline, { width: w - 1, height: row.h - 1, rx: 6.5 });
    set(parts.line, { d: where.first ? "M8,0H8" : `M8,0H${w}` });
    set(parts.strip, {
      d: `M6,0H${a}${a ? "a7,7 0 0 0 -7,7" : ""}V${row.h - b}${b ? "a7,7 0 0 0 7,7" : ""}H6z`,
    });
    const right = w - 9 - (card.column ?? 0);
    fillTitle(parts.title, row, { right: w - 9, base: row.h / 2 + 4, left: 14 });
    set(parts.shape, { x: right, y: row.h / 2 + 4 });
    text(parts.shape, row.shape ?? "");
    badge(el, parts, row.badge, w - 4, 1);
    return item;
  }

  /**
   * @param {import("./types.js").Box} data
   * @param {string} parent
   * @param {number} x
   * @param {number} y
   */
  #box(data, parent, x, y) {
    const item = this.#keep(data.key, "box", data.scope, data, parent, x, y, () => {
      const parts = {
        under: s("rect", { class: "nbs-under", rx: 9, x: STACK, y: STACK }),
        back: s("rect", { class: "nbs-back", rx: 9 }),
        title: title(),
        shape: s("text", { class: "nbs-shape" }),
        outline: s("rect", { class: "nbs-outline", rx: 9 }),
      };
      const el = s("g", { class: "nbs-box" }, parts.under, parts.back, parts.title.el, parts.shape,
        parts.outline);
      return { el, parts };
    });
    const { el, parts } = item;
    place(el, data.x, data.y);
    const w = data.w - STACK;
    const h = data.h - STACK;
    for (const part of [parts.under, parts.back, parts.outline]) set(part, { width: w, height: h });
    fillTitle(parts.title, data, { open: false, right: w - 10, base: 17, left: 13, low: 33 });
    set(parts.shape, { x: 23, y: 33 });
    text(parts.shape, data.shape ? `→ ${data.shape}` : "");
    badge(el, parts, data.badge, w - 3, 0);
    return item;
  }

  /**
   * @param {import("./types.js").Pill} data
   * @param {string} parent
   * @param {number} x
   * @param {number} y
   */
  #pill(data, parent, x, y) {
    const item = this.#keep(data.key, "pill", data.node, data, parent, x, y, () => {
      const parts = {
        back: s("rect", { class: "nbs-back" }),
        name: s("text", { class: "nbs-name" }),
        shape: s("text", { class: "nbs-shape", "text-anchor": "end" }),
        outline: s("rect", { class: "nbs-outline", x: -3, y: -3 }),
      };
      const el = s("g", { class: "nbs-pill" }, parts.back, parts.name, parts.shape, parts.outline);
      return { el, parts };
    });
    const { el, parts } = item;
    const { w, h } = data;
    place(el, data.x, data.y);
    set(parts.back, { width: w, height: h, rx: h / 2 });
    set(parts.outline, { width: w + 6, height: h + 6, rx: h / 2 + 3 });
    const base = h / 2 + 4;
    set(parts.name, { x: data.shape ? 14 : w / 2, y: base, "text-anchor": data.shape ? "start" : "middle" });
    text(parts.name, data.name);
    set(parts.shape, { x: w - 14, y: base });
    text(parts.shape, data.shape ?? "");
    badge(el, parts, data.badge, w - 2, 0);
    return item;
  }
}

/** Name, class and count in a line, with the sign that opens and closes. */
function title() {
  const parts = {
    chip: s("g", { class: "nbs-chip" }, s("rect", { width: 24, height: 22, x: -10, y: -11 }),
      s("path", { d: "M-3.5,-4L.5,0L-3.5,4" })),
    name: s("tspan", { class: "nbs-name" }),
    type: s("tspan", { class: "nbs-type", dx: 6 }),
    times: s("tspan", { class: "nbs-times", dx: 6 }),
    params: s("text", { class: "nbs-params", "text-anchor": "end" }),
    line: /** @type {any} */ (null),
    el: /** @type {any} */ (null),
  };
  parts.line = s("text", {}, parts.name, parts.type, parts.times);
  parts.el = s("g", { class: "nbs-title" }, parts.chip, parts.line, parts.params);
  return parts;
}

/**
 * @param {any} parts
 * @param {any} data
 * @param {{open?: boolean, right: number, base: number, left: number, low?: number}} where
 */
function fillTitle(parts, data, where) {
  const foldable = where.open !== undefined;
  set(parts.chip, { display: foldable ? null : "none" });
  parts.chip.classList.toggle("nbs-open", where.open === true);
  parts.chip.style.transform = `translate(${where.left}px, ${where.base - 4}px)`;
  set(parts.line, { x: foldable ? where.left + 10 : where.left, y: where.base });
  text(parts.name, data.name);
  text(parts.type, data.type ?? "");
  text(parts.times, data.count > 1 ? `×${data.count}` : "");
  set(parts.params, { x: where.right, y: where.low ?? where.base });
  text(parts.params, data.params ?? "");
}

/**
 * An amber triangle with a count, at the upper right of a thing that cannot be rewritten.
 * @param {SVGGElement} el
 * @param {any} parts
 * @param {import("./types.js").Badge} data
 * @param {number} x
 * @param {number} y
 */
function badge(el, parts, data, x, y) {
  if (!data) {
    parts.badge?.remove();
    parts.badge = null;
    return;
  }
  if (!parts.badge) {
    parts.badge = s("g", { class: "nbs-badge" }, s("path", { d: "M0,-8L8.5,6.5H-8.5z" }),
      s("text", { "text-anchor": "middle", y: 4.5 }), s("title"));
    el.append(parts.badge);
  }
  parts.badge.style.transform = `translate(${x}px, ${y}px)`;
  text(parts.badge.children[1], data.count > 1 ? String(data.count) : "!");
  text(parts.badge.children[2], data.text);
}

/**
 * @param {SVGGElement} el
 * @param {number} x
 * @param {number} y
 */
function place(el, x, y) {
  const to = `translate(${x}px, ${y}px)`;
  if (el.style.transform !== to) el.style.transform = to;
}

/** Two paths with the same letters can be morphed by CSS, others cannot. @param {string | null} d */
const form = (d) => (d ?? "").replace(/[^A-Za-z]/g, "");

/** @param {SVGPathElement} path */
function fade(path) {
  path.animate?.([{ opacity: 0 }, { opacity: 1 }], { duration: 280, easing: "ease-out" });
}
