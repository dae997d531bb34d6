// @ts-check
// The list of edits: undo, redo, change one, switch it off, move it, drop it.

import { button, h, icon } from "./dom.js";

const FAR = 4; // px after which a press is a drag

/** @typedef {import("./types.js").Step} Step */

export class Steps {
  /**
   * @param {import("./types.js").View} view
   * @param {{edit: (form: any, number: number) => void}} parts
   */
  constructor(view, parts) {
    this.view = view;
    this.parts = parts;
    const { signal } = view;
    /** @type {Set<string>} requests on their way: a double click asks once */
    this.asked = new Set();
    this.dragged = false;
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
    const key = `${method} ${params.uid}`;
    if (params.uid !== undefined && this.asked.has(key)) return undefined;
    this.asked.add(key);
    this.view.busy(true);
    try {
      return await this.view.ask(method, params);
    } catch (error) {
      this.view.fail(error);
      this.draw(); // a box that was ticked shows again what is
      return undefined;
    } finally {
      this.asked.delete(key);
      this.view.busy(false);
    }
  }

  draw() {
    /** @type {Step[]} */
    const steps = this.view.model.get("steps") ?? [];
    const can = this.view.model.get("_can") ?? {};
    const held = /** @type {HTMLElement | null} */ (
      this.list.contains(document.activeElement) ? document.activeElement : null);
    const uid = held?.closest("li")?.dataset.uid;
    const what = held?.dataset.what;
    this.count.textContent = steps.length ? String(steps.length) : "";
    this.undoButton.disabled = !(can.undo ?? steps.length > 0);
    this.redoButton.disabled = !(can.redo ?? true);
    const more = steps.length > this.list.childElementCount;
    this.list.replaceChildren(...steps.map((step, i) => this.#row(step, i, steps.length)));
    if (more) this.list.scrollTop = this.list.scrollHeight;
    this.el.classList.toggle("nbs-empty", steps.length === 0);
    if (uid) this.list.querySelector(`[data-uid="${uid}"] [data-what="${what}"]`)?.focus({ preventScroll: true });
  }

  /** @param {Step} step @param {number} i @param {number} count */
  #row(step, i, count) {
    const { signal } = this.view;
    const on = h("input", {
      type: "checkbox", title: step.enabled ? "Switch off" : "Switch on", "data-what": "on",
      "aria-label": `Step ${step.text} is on`,
      on: { change: () => this.#ask("toggle_step", { uid: step.uid }) }, signal,
    });
    on.checked = step.enabled;
    const note = step.state === "failed" ? step.reason : step.detail;
    const text = h("button", {
      type: "button", class: "nbs-step-text", title: "Change this step", "data-what": "text",
      on: { click: () => this.#edit(step, i) }, signal,
    }, h("span", {}, step.text), note ? h("small", {}, note) : null);
    const grip = count < 2 ? null : h("button", {
      type: "button", class: "nbs-grip", title: "Move: drag, or arrow keys", "data-what": "grip",
      "aria-label": `Move step ${i + 1} of ${count}: arrow up, arrow down`,
      on: {
        keydown: (/** @type {KeyboardEvent} */ event) => {
          const to = i + (event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0);
          if (to === i) return;
          event.preventDefault();
          if (to >= 0 && to < count) this.#ask("move_step", { uid: step.uid, to });
        },
      },
      signal,
    }, icon("grip"));
    const drop = button({
      icon: "cross", title: "Drop this step", class: "nbs-drop",
      click: () => this.#ask("drop_step", { uid: step.uid }), signal,
    });
    const li = h("li", {
      class: `nbs-step nbs-step-${step.state}`, "data-uid": step.uid,
      on: { pointerdown: (/** @type {PointerEvent} */ event) => this.#press(event, li, step, i) }, signal,
    }, grip, on, text, drop);
    return li;
  }

  /** Opens the form of a step, filled in. @param {Step} step @param {number} i */
  async #edit(step, i) {
    if (this.dragged) return;
    const form = await this.#ask("step_form", { uid: step.uid });
    if (form) this.parts.edit(form, i + 1);
  }

  /**
   * A press that goes on to move drags the step to another place.
   * @param {PointerEvent} event
   * @param {HTMLElement} li
   * @param {Step} step
   * @param {number} from
   */
  #press(event, li, step, from) {
    const target = /** @type {Element} */ (event.target);
    if (event.button || target.closest("input, .nbs-drop")) return;
    this.dragged = false;
    const rows = /** @type {HTMLElement[]} */ ([...this.list.children]);
    const others = rows.filter((row) => row !== li);
    const middles = others.map((row) => {
      const box = row.getBoundingClientRect();
      return box.top + box.height / 2;
    });
    const start = event.clientY;
    let to = from;
    let dragging = false;
    const ending = new AbortController();
    const { signal } = ending;
    this.view.signal.addEventListener("abort", () => ending.abort(), { signal });

    const show = () => {
      li.classList.toggle("nbs-dragging", dragging);
      if (!dragging) li.style.transform = "";
      others.forEach((row, i) => {
        row.classList.toggle("nbs-line-above", dragging && i === to && to !== from);
        row.classList.toggle("nbs-line-below", dragging && to === others.length && i === to - 1 && to !== from);
      });
    };
    const end = () => {
      ending.abort();
      dragging = false;
      show();
    };
    document.addEventListener("pointermove", (move) => {
      if (!dragging && Math.abs(move.clientY - start) < FAR) return;
      dragging = true;
      this.dragged = true;
      li.style.transform = `translateY(${move.clientY - start}px)`;
      to = middles.filter((middle) => middle < move.clientY).length;
      show();
    }, { signal });
    document.addEventListener("pointerup", () => {
      const moved = dragging && to !== from;
      end();
      setTimeout(() => {
        this.dragged = false; // the click that ends a drag comes right after it
      });
      if (moved) this.#ask("move_step", { uid: step.uid, to });
    }, { signal });
    document.addEventListener("pointercancel", end, { signal });
    document.addEventListener("keydown", (key) => {
      if (key.key !== "Escape") return;
      key.stopPropagation();
      end();
    }, { signal, capture: true });
  }
}
