// @ts-check
// The code so far, live, with Copy and Emit.

import { button, h, icon } from "./dom.js";
import { emit, notebook, reveal } from "./host.js";
import { parts } from "./python.js";
import { progress, verdict } from "./report.js";

/** @type {Record<string, string>} */
const SAID = {
  inserted: "Put into a new cell below. Run it with Shift+Enter.",
  updated: "The cell below is up to date. Run it with Shift+Enter.",
  unchanged: "The cell below holds this code already.",
  "inserted-below-edited": "You have edited the cell; the new code is in a cell below it.",
};

/** @type {Record<string, string>} */
const WHY = {
  nothing: "There is nothing to emit yet: click a layer in the picture, choose an operation, press Apply.",
  "read-only": "This notebook is read-only: copy the code instead.",
  "no-notebook": "This notebook lets no widget add a cell: copy the code, or run surgery.emit() in a cell.",
};

/** Where tastes differ, by the name that Python has for it; the first of each is the default. */
const TASTES = [
  { name: "in_place", label: "Change", choices: [{ value: true, label: "the model itself" }, { value: false, label: "a copy of it" }] },
  { name: "function", label: "As", choices: [{ value: false, label: "statements" }, { value: true, label: "a function" }] },
  {
    name: "classes", label: "A changed forward",
    choices: [
      { value: "auto", label: "whatever stays right most widely" },
      { value: "subclass", label: "a subclass, with the author’s text" },
      { value: "new", label: "a class of its own" },
    ],
  },
];

export class Code {
  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
    const { signal } = view;
    this.lines = h("code", {});
    this.copyButton = button({ icon: "copy", label: "Copy", title: "Copy the code", class: "nbs-copy", click: () => this.copy(), signal });
    this.emitButton = button({
      icon: "emit", label: "Emit", title: "Put the code into the next cell", class: "nbs-primary nbs-emit",
      click: () => this.emit(), signal,
    });
    if (!notebook(view.model)) this.emitButton.hidden = true;
    /** @type {Map<string, HTMLSelectElement>} */
    this.tastes = new Map();
    const rows = TASTES.map(({ name, label, choices }) => {
      const select = h("select", { class: "nbs-input", on: { change: () => this.restyle(name) }, signal },
        ...choices.map((choice) => h("option", {}, choice.label)));
      this.tastes.set(name, select);
      return h("label", { class: "nbs-field" }, h("span", { class: "nbs-label" }, label), select);
    });
    this.style = h("details", { class: "nbs-style" },
      h("summary", { class: "nbs-button", title: "How the code is written" }, "Style"),
      h("div", { class: "nbs-tastes", role: "group", "aria-label": "How the code is written" }, ...rows));
    view.root.addEventListener("pointerdown", (event) => {
      if (!this.style.contains(event.target)) this.style.open = false;
    }, { signal });
    this.style.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || !this.style.open) return;
      event.stopPropagation();
      this.style.open = false;
      this.style.querySelector("summary").focus();
    }, { signal });
    this.fate = h("p", { class: "nbs-fate", role: "status", hidden: true });
    this.el = h("section", { class: "nbs-code", "aria-label": "Code" },
      h("header", {}, h("h4", {}, "Code"), h("span", { class: "nbs-space" }), this.style, this.copyButton, this.emitButton),
      this.fate, h("pre", { tabindex: 0 }, this.lines));
    this.draw();
    this.drawStyle();
  }

  /** A cell ends without a line break. */
  get source() {
    return String(this.view.model.get("code") ?? "").trimEnd();
  }

  draw() {
    const { source } = this;
    this.lines.replaceChildren(...parts(source).map(({ text, kind }) =>
      kind ? h("span", { class: `nbs-py-${kind}` }, text) : text));
    this.drawFate();
  }

  /** What the full check says of the code that is in the cell below; nothing for other code. */
  drawFate() {
    /** @type {import("./types.js").Checking} */
    const checking = this.view.model.get("_checking") ?? {};
    /** @type {import("./types.js").Report} */
    const report = this.view.model.get("report") ?? {};
    const wrong = (report.findings ?? []).find((finding) => finding.severity === "error");
    const { state } = checking;
    this.fate.hidden = this.view.state.emitted !== this.source || !state;
    if (this.fate.hidden) return;
    const bad = state === "failed" || (state === "done" && wrong);
    this.fate.dataset.kind = bad ? "error" : state === "done" ? "ok" : "info";
    const text = state === "running" ? `In the cell below; ${progress(checking)}`
      : state === "stopped" ? "In the cell below; the full check was stopped"
      : state === "failed" ? `Don’t rely on the cell below: the full check could not be finished: ${checking.text}`
      : wrong ? `Don’t rely on the cell below, ${verdict(report)}: ${wrong.text}`
      : `In the cell below; checked in full: ${verdict(report)}`;
    this.fate.replaceChildren(icon(bad ? "cross" : state === "done" ? "check" : "info"), h("span", {}, text));
  }

  drawStyle() {
    const now = this.view.model.get("_style") ?? {};
    for (const { name, choices } of TASTES) {
      const at = Math.max(0, choices.findIndex(({ value }) => value === now[name]));
      const select = /** @type {HTMLSelectElement} */ (this.tastes.get(name));
      select.selectedIndex = at;
    }
  }

  /** @param {string} name */
  async restyle(name) {
    const select = /** @type {HTMLSelectElement} */ (this.tastes.get(name));
    const { value } = /** @type {any} */ (TASTES.find((taste) => taste.name === name)).choices[select.selectedIndex];
    this.view.busy(true);
    try {
      await this.view.ask("style", { [name]: value });
    } catch (error) {
      this.view.fail(error);
    } finally {
      this.view.busy(false);
      this.drawStyle();
    }
  }

  async emit() {
    const { source } = this;
    const empty = this.view.model.get("_can")?.emit === false;
    this.emitButton.disabled = true;
    try {
      const done = await emit(this.view.model, this.view.el, source, this.view.state.memo, empty);
      if (!done.ok) {
        this.view.say(WHY[done.why ?? ""] ?? "", done.why === "nothing" ? "info" : "error");
        return;
      }
      this.view.state.emitted = empty ? null : source;
      if (!empty) this.view.ask("verify", { again: false }).catch(this.view.fail);
      this.drawFate();
      this.view.say(SAID[done.action ?? ""] ?? "Done.");
      await reveal(done.index ?? -1, this.view.el);
    } catch (error) {
      this.view.say(`The cell could not be written: ${/** @type {Error} */ (error).message}. Copy the code instead.`, "error");
    } finally {
      this.emitButton.disabled = false;
    }
  }

  async copy() {
    const { source } = this;
    try {
      await navigator.clipboard.writeText(source);
    } catch { // no permission, or no secure page: the old way
      const area = h("textarea", { class: "nbs-offscreen" });
      area.value = source;
      this.view.root.append(area);
      area.select();
      const copied = document.execCommand?.("copy");
      area.remove();
      if (!copied) {
        this.view.say("The browser refuses the clipboard: select the code and press Ctrl+C.", "error");
        return;
      }
    }
    this.view.say("Copied.");
  }
}
