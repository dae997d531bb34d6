// @ts-check
// What is selected, what the pointer is over, and how both show in the picture.

import { save } from "./protocol.js";

export class Selection {
  /**
   * @param {import("./types.js").View} view
   * @param {import("./scene.js").Painter} painter
   * @param {HTMLElement} canvas
   * @param {{dragged: boolean}} camera
   * @param {{toggle: (scope: string, recursive?: boolean) => void, tip: HTMLElement}} parts
   */
  constructor(view, painter, canvas, camera, parts) {
    this.view = view;
    this.painter = painter;
    this.tip = parts.tip;
    this.toggle = parts.toggle;
    /** @type {((name: string) => void) | null} the next click answers a field of a form */
    this.picking = null;
    /** @type {Element[]} */
    this.lit = [];
    const { signal } = view;
    canvas.addEventListener("click", (event) => {
      if (camera.dragged) return;
      this.#click(event);
    }, { signal });
    canvas.addEventListener("dblclick", (event) => {
      const item = this.#at(event);
      if (item && (item.kind === "box" || item.kind === "group") && item.name !== "") this.toggle(item.name);
    }, { signal });
    canvas.addEventListener("pointerover", (event) => this.#over(event), { signal });
    canvas.addEventListener("pointermove", (event) => this.#moveTip(event), { signal });
    canvas.addEventListener("pointerleave", () => this.#light(null), { signal });
    view.root.addEventListener("keydown", () => this.#light(null), { signal, capture: true }); // the pointer rests, the eye moves on
  }

  /** @returns {string[]} */
  get names() {
    return this.view.model.get("selection") ?? [];
  }

  /** @param {string[]} names */
  set(names) {
    const old = this.names;
    if (names.length === old.length && names.every((name, i) => name === old[i])) return;
    this.view.model.set("selection", names);
    save(this.view.model);
  }

  /** Marks what is selected; again after each drawing. */
  mark() {
    for (const el of this.painter.svg.querySelectorAll(".nbs-selected")) el.classList.remove("nbs-selected");
    for (const name of this.names)
      for (const item of this.painter.names.get(name) ?? []) item.el.classList.add("nbs-selected");
  }

  /**
   * The thing under an event, or null over the ground.
   * @param {Event} event
   * @returns {import("./scene.js").Shown | null}
   */
  #at(event) {
    const el = /** @type {Element} */ (event.target).closest?.("[data-name]");
    const key = /** @type {SVGGElement | null} */ (el)?.dataset.key;
    const item = key === undefined ? undefined : this.painter.shown.get(key);
    return !item || (item.kind === "group" && item.parent === null) ? null : item;
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const target = /** @type {Element} */ (event.target);
    if (target.closest?.(".nbs-overlay")) return;
    const item = this.#at(event);
    if (item && target.closest(".nbs-chip")) {
      this.toggle(item.name, event.altKey);
      return;
    }
    if (this.picking) {
      if (item) this.picking(item.name);
      return;
    }
    const more = event.shiftKey || event.ctrlKey || event.metaKey;
    if (!item) {
      if (!more) this.set([]);
      return;
    }
    const names = item.kind === "box" ? [...item.data.scopes] : [item.name];
    if (!more) {
      this.set(names);
      return;
    }
    const old = this.names;
    const had = names.every((name) => old.includes(name));
    this.set(had ? old.filter((name) => !names.includes(name)) : [...old, ...names.filter((n) => !old.includes(n))]);
  }

  /** @param {PointerEvent} event */
  #over(event) {
    const target = /** @type {SVGElement} */ (event.target);
    const badge = target.closest?.(".nbs-badge");
    const item = this.#at(event);
    if (target.classList?.contains("nbs-edge")) {
      this.#light(target.dataset.value ?? null, target.dataset.shape);
      return;
    }
    const note = badge ? "" : item?.kind === "row" ? item.data.tip : "";
    this.#light(item && item.kind !== "group" ? this.#valueOf(item) : null, note);
  }

  /**
   * Lights the whole way of one value.
   * @param {string | null} value
   * @param {string} [note]
   */
  #light(value, note = "") {
    for (const el of this.lit) el.classList.remove("nbs-lit");
    for (const el of this.lit) this.#arrow(/** @type {SVGElement} */ (el), false);
    this.lit = value === null ? [] : [...(this.painter.values.get(value) ?? [])];
    for (const el of this.lit) el.classList.add("nbs-lit");
    for (const el of this.lit) this.#arrow(/** @type {SVGElement} */ (el), true);
    this.tip.textContent = note ?? "";
    this.tip.classList.toggle("nbs-shown", Boolean(note));
  }

  /** A marker has its own colour: CSS cannot pass the line's on everywhere. @param {SVGElement} el @param {boolean} lit */
  #arrow(el, lit) {
    if (!el.hasAttribute("marker-end")) return;
    const name = lit ? "lit" : el.classList.contains("nbs-skip") ? "skip" : "edge";
    el.setAttribute("marker-end", `url(#${this.painter.id(name)})`);
  }

  /**
   * A row's tip stands beside the row, so that it covers no other; an edge's goes with the pointer.
   * @param {PointerEvent} event
   */
  #moveTip(event) {
    if (!this.tip.classList.contains("nbs-shown")) return;
    const box = /** @type {HTMLElement} */ (this.tip.parentElement).getBoundingClientRect();
    const { offsetWidth: wide, offsetHeight: high } = this.tip;
    const item = this.#at(event);
    let x = event.clientX - box.left + 14;
    let y = event.clientY - box.top + 16;
    if (item?.kind === "row") {
      const row = item.el.getBoundingClientRect();
      y = row.top - box.top;
      x = row.right - box.left + 10;
      if (x + wide > box.width - 6) x = row.left - box.left - wide - 10;
      if (x < 6) { // no room on either side
        x = event.clientX - box.left;
        y -= high + 6;
      }
    }
    x = Math.max(6, Math.min(x, box.width - wide - 6));
    y = Math.max(6, Math.min(y, box.height - high - 6));
    this.tip.style.transform = `translate(${x}px, ${y}px)`;
  }

  /**
   * The value that a thing makes, as edges name it.
   * @param {import("./scene.js").Shown} item
   * @returns {string | null}
   */
  #valueOf(item) {
    if (item.key.startsWith("n:")) return item.key.slice(2);
    const edges = this.painter.shown.get(item.parent ?? "")?.data.edges ?? [];
    return edges.find((/** @type {any} */ edge) => edge.from === item.key)?.value ?? null;
  }
}
