// @ts-check
// The bar on top: search, depth, zoom, before and after.

import { button, h, icon } from "./dom.js";

export class Toolbar {
  /**
   * @param {import("./types.js").View} view
   * @param {{depth: (by: number) => void, zoom: (by: number) => void, fit: () => void, top: () => void,
   *   go: (name: string) => void, found: (names: string[]) => void, look: (which: string) => void, help: () => void}} parts
   */
  constructor(view, parts) {
    this.view = view;
    this.parts = parts;
    const { signal } = view;
    /** @type {string[]} */
    this.hits = [];
    this.at = -1;
    this.asked = 0;
    this.pending = false;
    this.wanted = 0;
    this.input = h("input", {
      type: "search", class: "nbs-input nbs-search", placeholder: "Search layers", spellcheck: "false",
      "aria-label": "Search layers", title: "Search by name or type ( / )",
      on: {
        input: () => this.#search(),
        keydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          if (this.pending) this.wanted = event.shiftKey ? -1 : 1; // goes on when the answer is there
          else this.#next(event.shiftKey ? -1 : 1);
        },
      },
      signal,
    });
    this.number = h("span", { class: "nbs-hits" });
    this.scale = h("button", { type: "button", class: "nbs-button nbs-scale", title: "Back to 100 %", on: { click: () => parts.zoom(0) }, signal });
    this.looks = h("div", { class: "nbs-segment nbs-looks", hidden: true });
    this.working = h("span", { class: "nbs-spinner", hidden: true, role: "status", "aria-label": "working" });
    this.el = h("div", { class: "nbs-toolbar", role: "toolbar", "aria-label": "Picture" },
      h("div", { class: "nbs-searchbox" }, icon("search"), this.input, this.number),
      h("div", { class: "nbs-segment" },
        button({ icon: "shallower", title: "Close one level", class: "nbs-shallower", click: () => parts.depth(-1), signal }),
        button({ icon: "deeper", title: "Open one level", class: "nbs-deeper", click: () => parts.depth(1), signal })),
      this.looks,
      h("span", { class: "nbs-space" }), this.working,
      h("div", { class: "nbs-segment" },
        button({ icon: "minus", title: "Zoom out (−)", click: () => parts.zoom(0.8), signal }),
        this.scale,
        button({ icon: "plus", title: "Zoom in (+)", click: () => parts.zoom(1.25), signal })),
      button({ icon: "fit", title: "Show all (F)", class: "nbs-fit", click: () => parts.fit(), signal }),
      button({ icon: "top", title: "To the top", class: "nbs-top", click: () => parts.top(), signal }),
      button({ icon: "help", title: "Keys and gestures", class: "nbs-keys", click: () => parts.help(), signal }));
  }

  focus() {
    this.input.focus({ preventScroll: true });
    this.input.select();
  }

  /** @returns {boolean} whether there was a search to end */
  clear() {
    if (!this.input.value) return false;
    this.input.value = "";
    this.#search();
    return true;
  }

  async #search() {
    const mine = ++this.asked;
    const query = this.input.value.trim();
    this.at = -1;
    this.pending = Boolean(query);
    this.wanted = 0;
    if (!query) {
      this.#show([]);
      return;
    }
    try {
      const names = await this.view.ask("find", { query });
      if (mine !== this.asked) return;
      this.pending = false;
      this.#show(names, true);
      if (this.wanted) this.#next(this.wanted);
    } catch (error) {
      if (mine !== this.asked) return;
      this.pending = false;
      this.view.fail(error);
    }
  }

  /** @param {string[]} names @param {boolean} [searched] */
  #show(names, searched = false) {
    this.hits = names;
    this.number.textContent = names.length ? String(names.length) : searched ? "none" : "";
    this.parts.found(names);
  }

  /** @param {number} by */
  #next(by) {
    if (!this.hits.length) return;
    this.at = (this.at + by + this.hits.length + (this.at < 0 && by < 0 ? 1 : 0)) % this.hits.length;
    this.number.textContent = `${this.at + 1} / ${this.hits.length}`;
    this.parts.go(this.hits[this.at]);
  }

  /** @param {number} k */
  zoomed(k) {
    this.scale.textContent = `${Math.round(k * 100)} %`;
  }

  /** @param {boolean} working */
  busy(working) {
    this.working.hidden = !working;
  }

  /**
   * Which pictures there are: before, after, or the parts of a split model.
   * @param {boolean} edited
   * @param {string[]} names
   * @param {string} shown
   */
  look(edited, names, shown) {
    this.looks.hidden = !edited;
    this.looks.replaceChildren(...names.map((name) =>
      h("button", {
        type: "button", class: "nbs-button", "data-look": name, "aria-pressed": String(name === shown),
        on: { click: () => this.parts.look(name) }, signal: this.view.signal,
      }, name === "before" ? "Before" : name === "after" ? "After" : name)));
  }
}
