// @ts-check
// The list of edits: undo, redo, switch one off, drop one.

import { button, h } from "./dom.js";

export class Steps {
  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
    const { signal } = view;
    this.undoButton = button({ icon: "undo", title: "Undo (Ctrl+Z)", class: "nbs-undo", click: () => this.undo(), signal });
    this.redoButton = button({ icon: "redo", title: "Redo (Ctrl+Shift+Z)", class: "nbs-redo", click: () => this.redo(), signal });
    this.count = h("span", { class: "nbs-count" });
    this.list = h("ol", {});
    this.el = h("section", { class: "nbs-steps", "aria-label": "Steps" },
      h("header", {}, h("h4", {}, "Steps"), this.count, h("span", { class: "nbs-space" }), this.undoButton, this.redoButton),
      this.list);
    this.draw();
  }

  undo() {
    return this.#ask("undo");
  }

  redo() {
    return this.#ask("redo");
  }

  /** @param {string} method @param {any} [params] */
  async #ask(method, params = {}) {
    this.view.busy(true);
    try {
      await this.view.ask(method, params);
    } catch (error) {
      this.view.fail(error);
    } finally {
      this.view.busy(false);
    }
  }

  draw() {
    /** @type {import("./types.js").Step[]} */
    const steps = this.view.model.get("steps") ?? [];
    const can = this.view.model.get("_can") ?? {};
    const { signal } = this.view;
    this.count.textContent = steps.length ? String(steps.length) : "";
    this.undoButton.disabled = !(can.undo ?? steps.length > 0);
    this.redoButton.disabled = !(can.redo ?? true);
    this.list.replaceChildren(...steps.map((step) => {
      const on = h("input", {
        type: "checkbox", title: step.enabled ? "Switch off" : "Switch on",
        "aria-label": `Step ${step.text} is on`,
        on: { change: () => this.#ask("toggle_step", { uid: step.uid }) }, signal,
      });
      on.checked = step.enabled;
      const note = step.state === "failed" ? step.reason : step.detail;
      return h("li", { class: `nbs-step nbs-step-${step.state}` }, on,
        h("div", { class: "nbs-step-text" }, h("div", {}, step.text), note ? h("small", {}, note) : null),
        button({
          icon: "cross", title: "Drop this step", class: "nbs-drop",
          click: () => this.#ask("drop_step", { uid: step.uid }), signal,
        }));
    }));
    this.el.classList.toggle("nbs-empty", steps.length === 0);
  }
}
