// Built by nbsurgery/widget/js/build.mjs from src/: edit there, then `npm run build`.

// src/dom.js
var SVG = "http://www.w3.org/2000/svg";
function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  const { on, signal, ...attributes } = props;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === void 0) continue;
    el.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, handler] of Object.entries(on ?? {}))
    el.addEventListener(name, handler, signal ? { signal } : void 0);
  for (const child of children)
    if (child !== null && child !== void 0 && child !== false) el.append(child);
  return el;
}
function s(tag, attributes = {}, ...children) {
  const el = document.createElementNS(SVG, tag);
  set(el, attributes);
  el.append(...children);
  return el;
}
function set(el, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === void 0 || value === false) el.removeAttribute(name);
    else if (el.getAttribute(name) !== String(value)) el.setAttribute(name, String(value));
  }
}
function text(el, text3) {
  if (el.textContent !== text3) el.textContent = text3;
}
var ICONS = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.8 10.8 14 14",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  top: "M3 2.5h10M8 13.5v-8M4.8 8.5 8 5.3l3.2 3.2",
  deeper: "M4 3.5h8M4 7l4 3 4-3M4 10.5l4 3 4-3",
  shallower: "M4 12.5h8M4 9l4-3 4 3M4 5.5l4-3 4 3",
  undo: "M5.5 3 2.5 6l3 3M2.8 6h6.7a4 4 0 0 1 0 8H6.5",
  redo: "M10.5 3l3 3-3 3M13.2 6H6.5a4 4 0 0 0 0 8h3",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  emit: "M2.5 2.5h11v4h-11zM8 8.5v5M5.5 11l2.5 2.5 2.5-2.5",
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  warn: "M8 2.5 14.5 13.5h-13zM8 6.5v3.5M8 11.8v.2",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 7.5v3.5M8 5v.2",
  target: "M8 12.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM8 1v4M8 11v4M1 8h4M11 8h4",
  chevron: "M6 3.5 10.5 8 6 12.5",
  grip: "M6 4v.01M10 4v.01M6 8v.01M10 8v.01M6 12v.01M10 12v.01",
  back: "M10 3.5 5.5 8l4.5 4.5",
  shield: "M8 1.8 13.5 4v4c0 3.2-2.3 5.3-5.5 6.3C4.8 13.3 2.5 11.2 2.5 8V4zM5.6 8l1.8 1.8 3.2-3.400",
  help: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6.2 6.3a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.8.6-.8 1.2M8 11.3v.2"
};
function icon(name) {
  return s(
    "svg",
    { class: "nbs-icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    s("path", { d: ICONS[name] })
  );
}
function button(options) {
  return h("button", {
    type: "button",
    class: `nbs-button ${options.class ?? ""}`.trim(),
    title: options.title ?? null,
    "aria-label": options.label ? null : options.title,
    disabled: options.disabled ?? false,
    on: { click: options.click },
    signal: options.signal
  }, options.icon ? icon(options.icon) : null, options.label ? h("span", {}, options.label) : null);
}

// src/host.js
var VIEW = "application/vnd.jupyter.widget-view+json";
var NAME = "nbsurgery";
var DEEP = 6;
function notebook(model) {
  const context = model.widget_manager?.context;
  const shared = context?.model?.sharedModel;
  const able = typeof shared?.insertCell === "function" && typeof shared?.transact === "function";
  return context?.model?.cells && able ? context : null;
}
var cellsOf = (context) => Array.from({ length: context.model.cells.length }, (_, i) => context.model.cells.get(i));
async function shows(manager, data, id, depth = 0) {
  const shown = data?.[VIEW]?.model_id;
  if (shown === id) return true;
  if (!shown || depth > DEEP || !manager.has_model?.(shown)) return false;
  return holds(manager, await manager.get_model(shown), id, depth + 1);
}
async function holds(manager, widget, id, depth) {
  if (widget.model_id === id) return true;
  if (depth > DEEP) return false;
  for (const child of widget.get("children") ?? [])
    if (child?.get && await holds(manager, child, id, depth + 1)) return true;
  for (const output of widget.get("outputs") ?? [])
    if (await shows(manager, output.data, id, depth + 1)) return true;
  return false;
}
async function showing(context, manager, id) {
  const found = [];
  for (const [i, cell] of cellsOf(context).entries()) {
    if (cell.type !== "code") continue;
    for (const output of cell.sharedModel.getOutputs())
      if (await shows(manager, output.data, id)) {
        found.push(i);
        break;
      }
  }
  return found;
}
async function ownCell(model, el, memo = {}) {
  const context = notebook(model);
  const cells = cellsOf(context);
  const shown = await showing(context, model.widget_manager, model.get("_widget_id"));
  const indexOf = (id) => id ? cells.findIndex((cell) => cell.id === id) : -1;
  const host = (
    /** @type {HTMLElement | null | undefined} */
    el?.closest?.(".jp-Notebook .jp-Cell")
  );
  const drawn = Number(host?.dataset.windowedListIndex ?? -1);
  let index = drawn >= 0 && (!shown.length || shown.includes(drawn)) ? drawn : -1;
  if (index < 0) {
    const known = indexOf(memo.cellId);
    if (known >= 0 && (!shown.length || shown.includes(known))) index = known;
  }
  if (index < 0 && shown.length) index = shown[shown.length - 1];
  if (index < 0) index = indexOf(model.get("_cell_id"));
  if (index >= 0) memo.cellId = cells[index].id;
  return index;
}
function writtenCells(context, from) {
  let own = null;
  let earlier = -1;
  for (const [index, cell] of cellsOf(context).entries()) {
    const mark = cell.sharedModel.getMetadata(NAME);
    if (!mark || mark.cell !== cell.id) continue;
    const mine = mark.widget === from.widget;
    if (mine && (mark.recipe ?? 0) === from.recipe) own = { index, cell, mark };
    else if (mine || from.origin && mark.origin === from.origin) earlier = index;
  }
  return { own, earlier };
}
async function emit(model, el, source, memo = {}, empty = false) {
  const context = notebook(model);
  if (!context) return { ok: false, why: "no-notebook" };
  if (context.model.readOnly) return { ok: false, why: "read-only" };
  const at = await ownCell(model, el, memo);
  const from = {
    widget: model.get("_widget_id"),
    recipe: model.get("_recipe") ?? 0,
    origin: memo.cellId ?? ""
  };
  const { own, earlier } = writtenCells(context, from);
  if (own && own.cell.sharedModel.getSource() === own.mark.source) {
    if (own.mark.source === source) return { ok: true, action: "unchanged", index: own.index };
    const shared2 = own.cell.sharedModel;
    shared2.transact(() => {
      shared2.setSource(source);
      shared2.setMetadata(NAME, { ...from, cell: own.cell.id, source });
    });
    return { ok: true, action: "updated", index: own.index };
  }
  if (empty) return { ok: false, why: "nothing" };
  const before = own ? own.index : Math.max(at, earlier);
  const index = before < 0 ? context.model.cells.length : before + 1;
  const id = globalThis.crypto?.randomUUID?.() ?? `nbs-${Date.now()}-${Math.random().toString(16).slice(2)}`;
  const shared = context.model.sharedModel;
  const metadata = { trusted: true, [NAME]: { ...from, cell: id, source } };
  shared.transact(() => shared.insertCell(index, { cell_type: "code", id, source, metadata }));
  return { ok: true, action: own ? "inserted-below-edited" : "inserted", index };
}
async function reveal(index, el) {
  const book = el?.closest?.(".jp-Notebook") ?? document;
  for (let tries = 0; tries < 20; tries++) {
    const found = [...book.querySelectorAll(`.jp-Cell[data-windowed-list-index="${index}"]`)];
    const cell = (
      /** @type {HTMLElement | undefined} */
      found.find((c) => c.getClientRects().length)
    );
    if (cell) {
      cell.scrollIntoView({ block: "nearest" });
      const down = { bubbles: true, cancelable: true, button: 0, view: window };
      cell.dispatchEvent(new MouseEvent("mousedown", down));
      cell.focus({ preventScroll: true });
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}
function isDark() {
  const light = document.body?.dataset.jpThemeLight;
  if (light !== void 0) return light === "false";
  const root = document.documentElement;
  if (document.body?.classList.contains("vscode-dark")) return true;
  if (document.body?.classList.contains("vscode-light")) return false;
  if (root.getAttribute("theme") === "dark" || root.dataset.theme === "dark") return true;
  return globalThis.matchMedia?.("(prefers-color-scheme: dark)").matches ?? false;
}
function watchTheme(changed, signal) {
  const observer = new MutationObserver(changed);
  const options = { attributes: true, attributeFilter: ["data-jp-theme-light", "class", "theme"] };
  if (document.body) observer.observe(document.body, options);
  observer.observe(document.documentElement, options);
  signal.addEventListener("abort", () => observer.disconnect());
  globalThis.matchMedia?.("(prefers-color-scheme: dark)").addEventListener?.("change", changed, { signal });
}
var ENDED = ["restarting", "autorestarting", "terminating", "dead"];
function watchKernel(model, told, signal) {
  const manager = model.widget_manager;
  const session = manager?.context?.sessionContext;
  const onStatus = (_, status) => {
    if (ENDED.includes(status)) told(true);
  };
  const onKernel = (_, { oldValue, newValue }) => {
    if (oldValue && oldValue.id !== newValue?.id) told(true);
  };
  session?.statusChanged?.connect(onStatus);
  session?.kernelChanged?.connect(onKernel);
  const onLive = async () => {
    const whole = await Promise.resolve(manager?.get_model?.(model.get("_widget_id"))).catch(() => null);
    if (!signal.aborted && typeof whole?.comm_live === "boolean") told(!whole.comm_live);
  };
  model.on("comm_live_update", onLive);
  onLive();
  signal.addEventListener("abort", () => {
    session?.statusChanged?.disconnect(onStatus);
    session?.kernelChanged?.disconnect(onKernel);
    model.off("comm_live_update", onLive);
  });
}

// src/python.js
var KEYWORDS = new Set(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield".split(" ")
);
var PART = new RegExp([
  /(?<comment>#[^\n]*)/u,
  /(?<string>[rbfuRBFU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/u,
  /(?<number>\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?)\b)/u,
  /(?<name>[\p{L}_][\p{L}\p{N}_]*)/u,
  /(?<space>\s+)/u,
  /(?<sign>[^\s\p{L}_\d"'#]+)/u
].map((part) => part.source).join("|"), "gu");
function parts(source) {
  const found = [];
  let at = 0;
  let before = "";
  for (const match of source.matchAll(PART)) {
    if (match.index > at) found.push({ text: source.slice(at, match.index), kind: "" });
    const [text3] = match;
    let kind = Object.entries(match.groups ?? {}).find(([, value]) => value !== void 0)?.[0] ?? "";
    const after = source.slice(match.index + text3.length, match.index + text3.length + 1);
    if (kind === "name") {
      if (KEYWORDS.has(text3)) kind = "keyword";
      else if (before === "def" || before === "class") kind = "defined";
      else if (text3 === "self") kind = "self";
      else kind = after === "(" ? "called" : "";
    } else if (kind === "space" || kind === "sign") kind = "";
    if (text3.trim()) before = text3;
    found.push({ text: text3, kind });
    at = match.index + text3.length;
  }
  if (at < source.length) found.push({ text: source.slice(at), kind: "" });
  return found;
}

// src/report.js
var SIGNS = { ok: "check", info: "info", warning: "warn", error: "cross" };
var WEIGHT = ["error", "warning", "info", "ok"];
function progress({ name, number, of, holds: holds2 }) {
  return `checking ${name}, ${number} of ${of}${holds2 ? "; it holds the kernel for some seconds" : ""}`;
}
function verdict(report) {
  for (const [severity, word] of [["error", "problem"], ["warning", "warning"]]) {
    const count = (report.findings ?? []).filter((f) => f.severity === severity).length;
    if (count) return `${count} ${word}${count > 1 ? "s" : ""}`;
  }
  return "all well";
}
var Report = class {
  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
    this.stopping = false;
    this.verifyButton = button({
      icon: "shield",
      label: "Verify",
      class: "nbs-verify",
      click: () => this.verify(),
      signal: view.signal
    });
    this.mood = h("span", { class: "nbs-mood" });
    this.bar = h("progress", { class: "nbs-progress", "aria-label": "Checks done", hidden: true });
    this.body = h("div", { class: "nbs-report-body" });
    this.el = h(
      "section",
      { class: "nbs-report", "aria-label": "Report" },
      h("header", {}, h("h4", {}, "Report"), this.mood, h("span", { class: "nbs-space" }), this.verifyButton),
      this.bar,
      this.body
    );
    this.draw();
  }
  /** Begins the full check, or ends the one at work. */
  async verify() {
    const running = this.checking.state === "running";
    this.stopping = running;
    if (running) this.draw();
    try {
      await this.view.ask(running ? "stop_verify" : "verify");
    } catch (error) {
      this.stopping = false;
      this.view.fail(error);
    }
  }
  /** @returns {import("./types.js").Checking} */
  get checking() {
    return this.view.model.get("_checking") ?? {};
  }
  draw() {
    const report = this.view.model.get("report") ?? {};
    const edited = (this.view.model.get("steps") ?? []).length > 0;
    const findings = [...report.findings ?? []];
    findings.sort((a, b) => WEIGHT.indexOf(a.severity) - WEIGHT.indexOf(b.severity));
    const count = (severity) => findings.filter((f) => f.severity === severity).length;
    const bad = count("error");
    const warned = count("warning");
    const { checking } = this;
    const running = checking.state === "running";
    if (!running) this.stopping = false;
    this.mood.className = `nbs-mood nbs-mood-${running ? "info" : bad ? "error" : warned ? "warning" : "ok"}`;
    this.mood.textContent = running ? progress(checking) : !edited || !findings.length ? "" : verdict(report) + (checking.state === "stopped" ? ", the full check was stopped" : "");
    this.bar.hidden = !running;
    this.bar.value = (checking.number ?? 1) - 1;
    this.bar.max = checking.of ?? 1;
    this.verifyButton.disabled = !edited || this.stopping;
    this.verifyButton.querySelector("span")?.replaceChildren(this.stopping ? "Stopping …" : running ? "Stop" : "Verify");
    this.verifyButton.title = running ? "Check no further" : "Check in full: other sizes, training, pickling, …";
    const facts = report.facts ?? [];
    const table = facts.length ? h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", {}), h("th", {}, "Before"), h("th", {}, "After"))),
      h("tbody", {}, ...facts.map((fact) => {
        const same = String(fact.before) === String(fact.after);
        return h(
          "tr",
          { class: same ? "nbs-same" : null },
          h("th", {}, fact.label),
          h("td", {}, String(fact.before ?? "")),
          h("td", {}, String(fact.after ?? ""))
        );
      }))
    ) : "";
    const grave = (f) => ["error", "warning"].includes(f.severity);
    this.body.replaceChildren(
      this.#list(findings.filter(grave)),
      table,
      this.#list(findings.filter((f) => !grave(f)))
    );
    if (checking.state === "failed")
      this.body.prepend(this.#list([{ severity: "error", text: `The full check could not be finished: ${checking.text}` }]));
    if (!findings.length && !facts.length)
      this.body.append(h("p", { class: "nbs-muted" }, "What an edit changes is checked here before you emit it."));
  }
  /** @param {import("./types.js").Finding[]} findings */
  #list(findings) {
    if (!findings.length) return "";
    return h("ul", {}, ...findings.map((finding) => h(
      "li",
      { class: `nbs-finding nbs-${finding.severity}` },
      icon(SIGNS[finding.severity] ?? "info"),
      h("span", {}, finding.text),
      this.#cure(finding) ?? ""
    )));
  }
  /** @param {import("./types.js").Finding} finding */
  #cure(finding) {
    const cure = finding.cure;
    if (!cure?.operation) return null;
    return button({
      label: cure.label ?? "Cure",
      class: "nbs-quick",
      signal: this.view.signal,
      click: async () => {
        this.view.busy(true);
        try {
          await this.view.ask("apply", { operation: cure.operation, arguments: cure.arguments ?? {} });
        } catch (error) {
          this.view.fail(error);
        } finally {
          this.view.busy(false);
        }
      }
    });
  }
};

// src/code.js
var SAID = {
  inserted: "Put into a new cell below. Run it with Shift+Enter.",
  updated: "The cell below is up to date. Run it with Shift+Enter.",
  unchanged: "The cell below holds this code already.",
  "inserted-below-edited": "You have edited the cell; the new code is in a cell below it."
};
var WHY = {
  nothing: "There is nothing to emit yet: click a layer in the picture, choose an operation, press Apply.",
  "read-only": "This notebook is read-only: copy the code instead.",
  "no-notebook": "This notebook lets no widget add a cell: copy the code, or run surgery.emit() in a cell."
};
var TASTES = [
  { name: "in_place", label: "Change", choices: [{ value: true, label: "the model itself" }, { value: false, label: "a copy of it" }] },
  { name: "function", label: "As", choices: [{ value: false, label: "statements" }, { value: true, label: "a function" }] },
  {
    name: "classes",
    label: "A changed forward",
    choices: [
      { value: "auto", label: "whatever stays right most widely" },
      { value: "subclass", label: "a subclass, with the author’s text" },
      { value: "new", label: "a class of its own" }
    ]
  }
];
var Code = class {
  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
    const { signal } = view;
    this.lines = h("code", {});
    this.copyButton = button({ icon: "copy", label: "Copy", title: "Copy the code", class: "nbs-copy", click: () => this.copy(), signal });
    this.emitButton = button({
      icon: "emit",
      label: "Emit",
      title: "Put the code into the next cell",
      class: "nbs-primary nbs-emit",
      click: () => this.emit(),
      signal
    });
    if (!notebook(view.model)) this.emitButton.hidden = true;
    this.tastes = /* @__PURE__ */ new Map();
    const rows = TASTES.map(({ name, label, choices }) => {
      const select = h(
        "select",
        { class: "nbs-input", on: { change: () => this.restyle(name) }, signal },
        ...choices.map((choice2) => h("option", {}, choice2.label))
      );
      this.tastes.set(name, select);
      return h("label", { class: "nbs-field" }, h("span", { class: "nbs-label" }, label), select);
    });
    this.style = h(
      "details",
      { class: "nbs-style" },
      h("summary", { class: "nbs-button", title: "How the code is written" }, "Style"),
      h("div", { class: "nbs-tastes", role: "group", "aria-label": "How the code is written" }, ...rows)
    );
    view.root.addEventListener("pointerdown", (event) => {
      if (!this.style.contains(event.target)) this.style.open = false;
    }, { signal });
    this.style.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.style.open) return;
      event.stopPropagation();
      this.style.open = false;
      this.style.querySelector("summary").focus();
    }, { signal });
    this.fate = h("p", { class: "nbs-fate", role: "status", hidden: true });
    this.el = h(
      "section",
      { class: "nbs-code", "aria-label": "Code" },
      h("header", {}, h("h4", {}, "Code"), h("span", { class: "nbs-space" }), this.style, this.copyButton, this.emitButton),
      this.fate,
      h("pre", { tabindex: 0 }, this.lines)
    );
    this.draw();
    this.drawStyle();
  }
  /** A cell ends without a line break. */
  get source() {
    return String(this.view.model.get("code") ?? "").trimEnd();
  }
  draw() {
    const { source } = this;
    this.lines.replaceChildren(...parts(source).map(({ text: text3, kind }) => kind ? h("span", { class: `nbs-py-${kind}` }, text3) : text3));
    this.drawFate();
  }
  /** What the full check says of the code that is in the cell below; nothing for other code. */
  drawFate() {
    const checking = this.view.model.get("_checking") ?? {};
    const report = this.view.model.get("report") ?? {};
    const wrong = (report.findings ?? []).find((finding) => finding.severity === "error");
    const { state } = checking;
    this.fate.hidden = this.view.state.emitted !== this.source || !state;
    if (this.fate.hidden) return;
    const bad = state === "failed" || state === "done" && wrong;
    this.fate.dataset.kind = bad ? "error" : state === "done" ? "ok" : "info";
    const text3 = state === "running" ? `In the cell below; ${progress(checking)}` : state === "stopped" ? "In the cell below; the full check was stopped" : state === "failed" ? `Don’t rely on the cell below: the full check could not be finished: ${checking.text}` : wrong ? `Don’t rely on the cell below, ${verdict(report)}: ${wrong.text}` : `In the cell below; checked in full: ${verdict(report)}`;
    this.fate.replaceChildren(icon(bad ? "cross" : state === "done" ? "check" : "info"), h("span", {}, text3));
  }
  drawStyle() {
    const now = this.view.model.get("_style") ?? {};
    for (const { name, choices } of TASTES) {
      const at = Math.max(0, choices.findIndex(({ value }) => value === now[name]));
      const select = (
        /** @type {HTMLSelectElement} */
        this.tastes.get(name)
      );
      select.selectedIndex = at;
    }
  }
  /** @param {string} name */
  async restyle(name) {
    const select = (
      /** @type {HTMLSelectElement} */
      this.tastes.get(name)
    );
    const { value } = (
      /** @type {any} */
      TASTES.find((taste) => taste.name === name).choices[select.selectedIndex]
    );
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
      this.view.say(`The cell could not be written: ${/** @type {Error} */
      error.message}. Copy the code instead.`, "error");
    } finally {
      this.emitButton.disabled = false;
    }
  }
  async copy() {
    const { source } = this;
    try {
      await navigator.clipboard.writeText(source);
    } catch {
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
};

// src/gestures.js
var LEAST = 0.05;
var MOST = 4;
var MARGIN = 24;
var Camera = class {
  /**
   * @param {HTMLElement} canvas
   * @param {HTMLElement} stage holds the picture; moved by a transform, which is far cheaper than a viewBox
   * @param {{pan: {x: number, y: number, k: number} | null}} state
   * @param {AbortSignal} signal
   * @param {(scale: number) => void} changed
   */
  constructor(canvas, stage, state, signal, changed) {
    this.canvas = canvas;
    this.stage = stage;
    this.state = state;
    this.changed = changed;
    this.size = { w: 0, h: 0 };
    this.dragged = false;
    this.signal = signal;
    this.#listen(signal);
  }
  get at() {
    return this.state.pan ?? { x: 0, y: 0, k: 1 };
  }
  /** @param {{width: number, height: number}} scene */
  resize(scene) {
    this.size = { w: scene.width, h: scene.height };
  }
  /**
   * @param {{x: number, y: number, k: number}} to
   * @param {boolean} [smooth]
   */
  go(to, smooth = false) {
    this.state.pan = this.#kept(to);
    const { x, y, k } = this.state.pan;
    this.stage.classList.toggle("nbs-smooth", smooth);
    this.stage.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
    this.changed(k);
  }
  /** Keeps a strip of the picture in sight. @param {{x: number, y: number, k: number}} to */
  #kept(to) {
    const { w, h: h2 } = this.#room();
    const keep = 60;
    const k = Math.min(MOST, Math.max(LEAST, to.k));
    if (!w || !this.size.w) return { ...to, k };
    return {
      k,
      x: Math.min(w - keep, Math.max(keep - this.size.w * k, to.x)),
      y: Math.min(h2 - keep, Math.max(keep - this.size.h * k, to.y))
    };
  }
  #room() {
    return { w: this.canvas.clientWidth, h: this.canvas.clientHeight };
  }
  /** The first look: readable, from the top; a small picture in the middle. */
  start() {
    if (this.state.pan) {
      this.go(this.state.pan);
      return;
    }
    const { w, h: h2 } = this.#room();
    if (!w) return;
    const k = Math.max(0.45, Math.min(1, (w - 2 * MARGIN) / this.size.w));
    const x = this.size.w * k < w ? (w - this.size.w * k) / 2 : MARGIN;
    const y = this.size.h * k < h2 ? (h2 - this.size.h * k) / 2 : 10;
    this.go({ x, y, k });
  }
  /** When the picture has shrunk away from under the view: back to what there is, as little as needed. */
  recover() {
    if (!this.state.pan) return;
    const { w, h: h2 } = this.#room();
    const { x, y, k } = this.state.pan;
    if (!w || !this.size.w) return;
    const back = (at, size, space) => {
      const seen = Math.min(at + size, space) - Math.max(at, 0);
      if (seen >= Math.min(size, space) * 0.3) return at;
      if (size <= space - 2 * MARGIN) return (space - size) / 2;
      return at < 0 ? space - MARGIN - size : MARGIN;
    };
    const to = { x: back(x, this.size.w * k, w), y: back(y, this.size.h * k, h2), k };
    if (to.x !== x || to.y !== y) this.go(to, true);
  }
  /** All of it at once. */
  fit() {
    const { w, h: h2 } = this.#room();
    const k = Math.min((w - 2 * MARGIN) / this.size.w, (h2 - 2 * MARGIN) / this.size.h, 1.4);
    this.go({ k, x: (w - this.size.w * k) / 2, y: (h2 - this.size.h * k) / 2 }, true);
  }
  /**
   * @param {number} factor
   * @param {{x: number, y: number}} [about] a point of the canvas that stays; its middle by default
   * @param {boolean} [smooth]
   */
  zoom(factor, about, smooth = false) {
    const { w, h: h2 } = this.#room();
    const point = about ?? { x: w / 2, y: h2 / 2 };
    const { x, y, k } = this.at;
    const next = Math.min(MOST, Math.max(LEAST, k * factor));
    const by = next / k;
    this.go({ k: next, x: point.x - (point.x - x) * by, y: point.y - (point.y - y) * by }, smooth);
  }
  /** Moves the least that brings a thing into sight. @param {{x: number, y: number, w: number, h: number}} box */
  show(box) {
    const room = this.#room();
    if (!room.w) return;
    let { x, y, k } = this.at;
    if (k < 0.4) k = 0.8;
    const moved = k !== this.at.k;
    const shift = (start, size, offset, space) => {
      const low = start * k + offset;
      const high = (start + size) * k + offset;
      const edge = Math.min(56, space / 6);
      if (moved || high - low > space - 2 * edge) {
        if (!moved && low < space - edge && high > edge + 40) return offset;
        return size * k > space - 2 * edge ? edge - start * k : space / 2 - (start + size / 2) * k;
      }
      if (low < edge) return offset + (edge - low);
      if (high > space - edge) return offset - (high - space + edge);
      return offset;
    };
    x = shift(box.x, box.w, x, room.w);
    y = shift(box.y, box.h, y, room.h);
    if (x !== this.at.x || y !== this.at.y || moved) this.go({ x, y, k }, true);
  }
  /**
   * Leaves a thing where it was on the screen when the picture around it has changed, and moves it only
   * as far sideways as shows its whole width.
   * @param {{x: number, y: number, w: number}} box
   * @param {{x: number, y: number}} was
   */
  hold(box, was) {
    const { k } = this.at;
    const room = this.#room().w;
    const width = box.w * k;
    const left = width > room - 32 ? 16 : Math.max(16, Math.min(was.x, room - 16 - width));
    this.go({ k, x: left - box.x * k, y: was.y - box.y * k }, true);
  }
  /** @param {MouseEvent} event */
  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
  /** @param {AbortSignal} signal */
  #listen(signal) {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false, signal });
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      this.dragged = false;
      if (event.button > 1) return;
      const target = (
        /** @type {Element} */
        event.target
      );
      if (target.closest?.("button, input, .nbs-overlay, .nbs-map")) return;
      drag = { id: event.pointerId, x: event.clientX, y: event.clientY, from: { ...this.at } };
    }, { signal });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag || event.pointerId !== drag.id) return;
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!this.dragged) {
        if (Math.hypot(dx, dy) < 4) return;
        this.dragged = true;
        canvas.setPointerCapture?.(event.pointerId);
        canvas.classList.add("nbs-dragging");
      }
      this.go({ ...drag.from, x: drag.from.x + dx, y: drag.from.y + dy });
    }, { signal });
    const end = () => {
      drag = null;
      canvas.classList.remove("nbs-dragging");
    };
    canvas.addEventListener("pointerup", end, { signal });
    canvas.addEventListener("pointercancel", end, { signal });
  }
  /**
   * Ctrl or ⌘ and a pinch zoom to the pointer. A plain wheel moves the picture only while the canvas has
   * the focus and there is more to see that way: a notebook that is scrolled past must not catch.
   * @param {WheelEvent} event
   */
  #wheel(event) {
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? this.canvas.clientHeight : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const step = Math.max(-60, Math.min(60, event.deltaY * unit));
      this.zoom(Math.exp(-step * 6e-3), this.#point(event));
      return;
    }
    if (!this.canvas.contains(document.activeElement)) return;
    const sideways = event.shiftKey && !event.deltaX;
    const dx = (sideways ? event.deltaY : event.deltaX) * unit;
    const dy = sideways ? 0 : event.deltaY * unit;
    const { x, y, k } = this.at;
    const { w, h: h2 } = this.#room();
    const more = (by, at, size, space) => by > 0 ? at + size * k > space - MARGIN : by < 0 ? at < MARGIN : false;
    const moveX = more(dx, x, this.size.w, w) ? dx : 0;
    const moveY = more(dy, y, this.size.h, h2) ? dy : 0;
    if (!moveX && !moveY) return;
    event.preventDefault();
    this.go({ k, x: x - moveX, y: y - moveY });
  }
};

// src/help.js
var ROWS = [
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
  ["Esc", "cancel, select nothing"]
];
function help() {
  return h(
    "div",
    { class: "nbs-help-card nbs-overlay", hidden: true, role: "dialog", "aria-label": "Keys" },
    h("dl", {}, ...ROWS.flatMap(([keys, what]) => [h("dt", {}, keys), h("dd", {}, what)]))
  );
}

// src/keyboard.js
function listenToKeys(view, canvas, parts2) {
  const { signal } = view;
  view.root.addEventListener("keydown", (event) => {
    event.stopPropagation();
    const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(
      /** @type {Element} */
      event.target.tagName
    );
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if (key === "escape") {
      if (!parts2.escape()) parts2.selection.set([]);
      canvas.focus({ preventScroll: true });
      event.preventDefault();
    } else if (writing) {
      return;
    } else if (command && key === "z") {
      if (event.shiftKey) parts2.redo();
      else parts2.undo();
      event.preventDefault();
    } else if (command && key === "y") {
      parts2.redo();
      event.preventDefault();
    } else if (key === "/" && !command) {
      parts2.search();
      event.preventDefault();
    }
  }, { signal });
  canvas.addEventListener("keydown", (event) => {
    if (event.target !== canvas || event.ctrlKey || event.metaKey || event.altKey) return;
    const { painter, selection, camera } = parts2;
    const list = painter.order.filter((item) => item.parent !== null);
    const name = selection.names[selection.names.length - 1];
    const current = name === void 0 ? void 0 : painter.find(name);
    const at = current ? list.indexOf(current) : -1;
    const pick = (item) => {
      if (!item) return;
      selection.set(item.kind === "box" ? [...item.data.scopes] : [item.name]);
      camera.show(item.kind === "group" ? { ...item, h: item.data.head } : item);
    };
    switch (event.key) {
      case "ArrowDown":
        pick(list[at + 1]);
        break;
      case "ArrowUp":
        pick(at < 0 ? list[list.length - 1] : list[at - 1]);
        break;
      case "ArrowLeft":
        if (current?.kind === "group") parts2.toggle(current.name);
        else if (current?.parent) {
          const up = painter.shown.get(current.parent);
          if (up?.parent) pick(up);
        }
        break;
      case "ArrowRight":
        if (current?.kind === "box") parts2.toggle(current.name);
        else if (current?.kind === "group") pick(list[at + 1]);
        break;
      case "Enter":
      case " ":
        if (event.key === " " && current && current.kind !== "row") parts2.toggle(current.name);
        else if (current) parts2.menu();
        break;
      case "+":
      case "=":
        camera.zoom(1.25, void 0, true);
        break;
      case "-":
        camera.zoom(0.8, void 0, true);
        break;
      case "0":
      case "f":
        camera.fit();
        break;
      default:
        return;
    }
    event.preventDefault();
  }, { signal });
}

// src/legend.js
var WORDS = {
  conv: "convolution",
  linear: "linear, product",
  norm: "normalization",
  act: "activation",
  pool: "pooling, resizing",
  attn: "attention",
  merge: "addition, joining",
  shape: "shape only",
  drop: "dropout, identity",
  embed: "embedding",
  other: "other"
};
function legend(painter) {
  const rows = painter.order.filter((item) => item.kind === "row");
  const found = new Set(rows.map((item) => item.data.family));
  const entries = Object.entries(WORDS).filter(([family]) => found.has(family)).map(([family, word]) => h("li", {}, h("i", { "data-family": family }), word));
  if (painter.svg.querySelector(".nbs-skip")) entries.push(h("li", {}, h("i", { class: "nbs-legend-skip" }), "skip connection"));
  return h("ul", { class: "nbs-legend", "aria-label": "Colours" }, ...entries);
}

// src/forms.js
var forms = 0;
function form(fields, options) {
  const tag = `nbs-form-${++forms}`;
  const controls = /* @__PURE__ */ new Map();
  const rows = fields.map((field, i) => {
    const id = `${tag}-${i}`;
    const control = (MAKERS[field.type] ?? text2)(field, id, options);
    controls.set(field.name, control);
    const label = h("label", { for: id, class: "nbs-label" }, field.label ?? field.name);
    const help2 = field.help ? h("div", { class: "nbs-help", id: `${id}-help` }, field.help) : null;
    if (field.type === "bool")
      return h("div", { class: "nbs-field nbs-field-bool" }, h("div", { class: "nbs-check" }, control.el, label), help2);
    return h("div", { class: `nbs-field nbs-field-${field.type}` }, label, control.el, help2);
  });
  return {
    el: h("div", { class: "nbs-fields" }, ...rows),
    /**
     * @param {boolean} [nulls] what was left empty is null; else it is left out
     * @returns {Record<string, any>}
     */
    read(nulls = false) {
      const values = {};
      for (const [name, control] of controls) {
        const value = control.read();
        if (nulls || value !== null && value !== void 0) values[name] = value ?? null;
      }
      return values;
    },
    focus() {
      const first = (
        /** @type {HTMLElement | null} */
        rows[0]?.querySelector("input, textarea, select")
      );
      first?.focus({ preventScroll: true });
      if (first instanceof HTMLInputElement && first.type === "text") first.select();
      return Boolean(first);
    }
  };
}
function text2(field, id, options) {
  const el = h("input", {
    id,
    type: "text",
    class: "nbs-input",
    spellcheck: "false",
    autocomplete: "off",
    on: { input: options.changed },
    signal: options.signal
  });
  el.value = field.default ?? "";
  return { el, read: () => el.value.trim() === "" ? null : el.value.trim() };
}
function code(field, id, options) {
  const el = h("textarea", {
    id,
    class: "nbs-input nbs-mono",
    rows: 1,
    spellcheck: "false",
    autocapitalize: "off",
    on: {
      input: () => {
        grow();
        options.changed();
      }
    },
    signal: options.signal
  });
  const grow = () => {
    el.rows = Math.min(6, Math.max(1, el.value.split("\n").length, Math.ceil(el.value.length / 38)));
  };
  el.value = field.default ?? "";
  grow();
  if (!field.choices?.length) return { el, read: () => el.value.trim() === "" ? null : el.value.trim() };
  const quick = field.choices.map((choice2) => {
    const { value, label } = option(choice2);
    const click = () => {
      el.value = String(value);
      grow();
      options.changed();
      el.focus();
    };
    return button({ label, class: "nbs-quick", click, signal: options.signal });
  });
  const box = h("div", { class: "nbs-stack" }, el, h("div", { class: "nbs-quicks" }, ...quick));
  return { el: box, read: () => el.value.trim() === "" ? null : el.value.trim() };
}
function int(field, id, options) {
  const el = h("input", {
    id,
    type: "number",
    step: 1,
    class: "nbs-input nbs-number",
    on: { input: options.changed },
    signal: options.signal
  });
  if (field.default !== null && field.default !== void 0) el.value = String(field.default);
  return { el, read: () => el.value === "" ? null : Number(el.value) };
}
var option = (choice2) => choice2 !== null && typeof choice2 === "object" ? { value: choice2.value, label: String(choice2.label ?? choice2.value) } : { value: choice2, label: String(choice2) };
function choice(field, id, options) {
  const choices = (field.choices ?? []).map(option);
  const el = h("select", {
    id,
    class: "nbs-input",
    on: { change: options.changed },
    signal: options.signal
  }, ...choices.map(({ label }, i) => h("option", { value: i }, label)));
  const at = choices.findIndex(({ value }) => value === field.default);
  el.value = String(Math.max(0, at));
  return { el, read: () => choices[Number(el.value)]?.value ?? null };
}
function bool(field, id, options) {
  const el = h("input", {
    id,
    type: "checkbox",
    on: { change: options.changed },
    signal: options.signal
  });
  el.checked = Boolean(field.default);
  return { el, read: () => el.checked };
}
function node(field, id, options) {
  const list = h("datalist", { id: `${id}-names` });
  const el = h("input", {
    id,
    type: "text",
    class: "nbs-input nbs-mono",
    list: `${id}-names`,
    spellcheck: "false",
    on: {
      input: async () => {
        options.changed();
        const names = await options.find(el.value).catch(() => []);
        list.replaceChildren(...names.slice(0, 30).map((name) => h("option", { value: name })));
      }
    },
    signal: options.signal
  });
  el.value = field.default ?? "";
  const pick = button({
    icon: "target",
    title: "Click it in the picture",
    click: () => options.pick((name) => {
      el.value = name;
      options.changed();
    }),
    signal: options.signal
  });
  return {
    el: h("div", { class: "nbs-pair" }, el, list, pick),
    read: () => el.value.trim() === "" ? null : el.value.trim()
  };
}
var MAKERS = { text: text2, code, int, choice, bool, node };

// src/menu.js
var PAUSE = 250;
var keyOf = (offer) => `${offer.operation}
${offer.label}`;
var Menu = class {
  /**
   * @param {import("./types.js").View} view
   * @param {{pick: (done: (name: string) => void) => void, mark: (names: string[]) => void,
   *   done: () => void}} parts
   */
  constructor(view, parts2) {
    this.view = view;
    this.parts = parts2;
    this.el = h("section", { class: "nbs-menu", "aria-label": "Operations" });
    this.offers = [];
    this.buttons = /* @__PURE__ */ new Map();
    this.form = null;
    this.names = [];
    this.wanted = false;
    view.signal.addEventListener("abort", () => this.#end());
  }
  get isOpen() {
    return this.form !== null;
  }
  /**
   * Shows what can be done; while some of it is still being tried, the same buttons are told how that ends.
   * @param {import("./types.js").Offer[]} offers
   * @param {string[]} names
   */
  show(offers, names) {
    const same = names.length === this.names.length && names.every((name, i) => name === this.names[i]);
    const more = same && this.offers.length > 0 && this.buttons.size > 0;
    this.offers = offers;
    this.names = names;
    if (more) this.#update();
    else if (!(this.isOpen && same)) this.close();
    if (this.wanted && offers.some((offer) => !offer.pending)) this.focus();
    if (!offers.some((offer) => offer.pending)) this.wanted = false;
  }
  /** The offers of an old selection must not be taken for those of the new one. */
  wait() {
    this.#end();
    this.stale();
  }
  /** Those of the model before an edit are no longer true; a form that is being filled in stays. */
  stale() {
    this.offers = [];
    this.wanted = false;
    if (!this.isOpen) this.#list(true);
  }
  close() {
    this.#end();
    this.#list(this.view.root.dataset.asking !== void 0);
  }
  focus() {
    const first = (
      /** @type {HTMLElement | null} */
      this.el.querySelector("button:not(:disabled)")
    );
    if (first) first.focus();
    else this.wanted = true;
  }
  #end() {
    this.form?.abort();
    this.form = null;
    this.parts.mark([]);
  }
  /** @param {boolean} asking whether an answer is on its way */
  #list(asking) {
    const groups = /* @__PURE__ */ new Map();
    for (const offer of this.offers) {
      const name = offer.group || "Edit";
      groups.set(name, [...groups.get(name) ?? [], offer]);
    }
    this.buttons = new Map(this.offers.map((offer) => [keyOf(offer), this.#button(offer)]));
    this.el.replaceChildren(...[...groups].map(([name, offers]) => h(
      "div",
      { class: "nbs-offers" },
      h("h4", {}, name),
      h("div", { class: "nbs-buttons" }, ...offers.map((offer) => this.buttons.get(keyOf(offer))))
    )));
    if (asking && !this.offers.length)
      this.el.append(h("p", { class: "nbs-muted nbs-trying" }, "Trying what can be done here …"));
    this.el.hidden = !this.el.childElementCount;
  }
  /** What has been tried can be pressed, or goes. */
  #update() {
    const offers = new Map(this.offers.map((offer) => [keyOf(offer), offer]));
    for (const [key, made] of this.buttons) {
      const offer = offers.get(key);
      if (offer) made.disabled = offer.pending ?? false;
      else {
        const row = made.closest(".nbs-offers");
        made.remove();
        if (!row?.querySelector("button")) row?.remove();
        this.buttons.delete(key);
      }
    }
    if (!this.isOpen) this.el.hidden = !this.offers.length;
  }
  /** @param {import("./types.js").Offer} offer */
  #button(offer) {
    const key = keyOf(offer);
    const [label, meaning] = offer.label.split(": ");
    const made = button({
      label,
      title: [meaning, offer.note].filter(Boolean).join("; ") || void 0,
      class: "nbs-offer",
      click: () => this.open(this.offers.find((one) => keyOf(one) === key) ?? offer),
      signal: this.view.signal,
      disabled: offer.pending
    });
    if ((offer.count ?? 1) > 1) made.append(h("span", { class: "nbs-count" }, String(offer.count)));
    return made;
  }
  /** @param {import("./types.js").Offer} offer */
  open(offer) {
    this.#end();
    const controller = new AbortController();
    this.form = controller;
    const { signal } = controller;
    const preview = h("div", { class: "nbs-preview", role: "status" });
    const problem = h("div", { class: "nbs-problem", role: "alert", hidden: true });
    let asked = 0;
    let timer = (
      /** @type {any} */
      0
    );
    signal.addEventListener("abort", () => clearTimeout(timer));
    const step = offer.uid === void 0 ? {} : { uid: offer.uid };
    const values = () => ({
      ...offer.arguments ?? { where: this.names },
      ...fields.read(offer.uid !== void 0)
    });
    const fail = (message) => {
      problem.replaceChildren(icon("warn"), h("span", {}, message));
      problem.hidden = message === "";
    };
    const look = async (first = false) => {
      const mine = ++asked;
      try {
        const shown = await this.view.ask("preview", { operation: offer.operation, arguments: values(), ...step });
        if (signal.aborted || mine !== asked) return;
        fail("");
        preview.textContent = shown?.text ?? "";
        this.parts.mark(shown?.places ?? []);
        apply.disabled = shown?.count === 0;
      } catch (error) {
        if (signal.aborted || mine !== asked) return;
        const { message } = (
          /** @type {Error} */
          error
        );
        preview.textContent = "";
        this.parts.mark([]);
        if (!first) fail(message);
      }
    };
    const changed = () => {
      fail("");
      apply.disabled = false;
      clearTimeout(timer);
      timer = setTimeout(() => look(), PAUSE);
    };
    const go = async () => {
      if (apply.disabled) return;
      clearTimeout(timer);
      asked++;
      apply.disabled = true;
      apply.classList.add("nbs-working");
      this.view.busy(true);
      try {
        if (offer.uid === void 0) await this.view.ask("apply", { operation: offer.operation, arguments: values() });
        else await this.view.ask("change_step", { ...step, arguments: values() });
        if (!signal.aborted) this.close();
        this.parts.done();
      } catch (error) {
        if (!signal.aborted) {
          preview.textContent = "";
          fail(String(
            /** @type {Error} */
            error.message
          ));
          apply.disabled = false;
        }
      } finally {
        apply.classList.remove("nbs-working");
        this.view.busy(false);
      }
    };
    const fields = form(offer.fields ?? [], {
      changed,
      signal,
      find: (query) => this.view.ask("find", { query }),
      pick: this.parts.pick
    });
    const back = button({ icon: "back", title: "Back to the operations", click: () => this.close(), signal });
    const apply = button({ label: offer.uid === void 0 ? "Apply" : "Change", class: "nbs-primary nbs-apply", click: go, signal });
    const cancel = button({ label: "Cancel", click: () => this.close(), signal });
    this.el.replaceChildren(h(
      "form",
      {
        class: "nbs-form",
        on: {
          submit: (event) => event.preventDefault(),
          keydown: (event) => {
            const field = (
              /** @type {Element} */
              event.target.tagName
            );
            const send = field === "INPUT" || field === "TEXTAREA" && !event.shiftKey;
            if (event.key !== "Enter" || !send || apply.disabled) return;
            event.preventDefault();
            go();
          }
        },
        signal
      },
      h("header", {}, back, h("h4", {}, offer.label)),
      offer.note ? h("p", { class: "nbs-note" }, offer.note) : null,
      fields.el,
      preview,
      problem,
      h("footer", {}, cancel, apply)
    ));
    this.el.hidden = false;
    if (!fields.focus()) apply.focus({ preventScroll: true });
    if (this.el.parentElement) this.el.parentElement.scrollTop = 0;
    look(true);
  }
};

// src/minimap.js
var WIDE = 84;
var HIGH = 0.62;
var Minimap = class {
  /**
   * @param {HTMLElement} canvas
   * @param {import("./gestures.js").Camera} camera
   * @param {AbortSignal} signal
   */
  constructor(canvas, camera, signal) {
    this.canvas = canvas;
    this.camera = camera;
    this.scale = 1;
    this.things = s("g");
    this.frame = s("rect", { class: "nbs-map-frame", rx: 2 });
    this.el = s("svg", { class: "nbs-map", "aria-hidden": "true" }, this.things, this.frame);
    let held = false;
    const move = (event) => {
      const box = this.el.getBoundingClientRect();
      const { k } = camera.at;
      const x = (event.clientX - box.left) / this.scale;
      const y = (event.clientY - box.top) / this.scale;
      camera.go({ k, x: canvas.clientWidth / 2 - x * k, y: canvas.clientHeight / 2 - y * k }, !held);
    };
    this.el.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      this.el.setPointerCapture?.(event.pointerId);
      move(event);
      held = true;
    }, { signal });
    this.el.addEventListener("pointermove", (event) => {
      if (held) move(event);
    }, { signal });
    for (const name of ["pointerup", "pointercancel"])
      this.el.addEventListener(name, () => {
        held = false;
      }, { signal });
    this.el.addEventListener("click", (event) => event.stopPropagation(), { signal });
  }
  /**
   * Draws what there is: modules as frames, operations as strips of their colour.
   * @param {import("./scene.js").Painter} painter
   */
  draw(painter) {
    const { w, h: h2 } = this.camera.size;
    const room = this.canvas.clientHeight;
    if (!w || !room) return;
    this.scale = Math.min(WIDE / w, room * HIGH / h2);
    const k = this.scale;
    set(this.el, { width: w * k, height: h2 * k });
    const shapes = [];
    for (const item of painter.shown.values()) {
      if (item.parent === null || item.kind === "card") continue;
      const high = item.kind === "row" ? item.data.h : item.h;
      const box = { x: item.x * k, y: item.y * k, width: Math.max(1, item.w * k), height: Math.max(1, high * k) };
      shapes.push(s("rect", { ...box, class: `nbs-map-${item.kind}`, "data-family": item.data.family }));
    }
    this.things.replaceChildren(...shapes);
    this.follow();
  }
  /** Moves the frame to what is in sight; away where all is in sight. */
  follow() {
    const { x, y, k } = this.camera.at;
    const { w, h: h2 } = this.camera.size;
    const wide = this.canvas.clientWidth;
    const high = this.canvas.clientHeight;
    const whole = w * k <= wide * 1.05 && h2 * k <= high * 1.05;
    this.el.classList.toggle("nbs-hidden", whole || !wide);
    const at = this.scale;
    const left = Math.max(0, -x / k * at);
    const top = Math.max(0, -y / k * at);
    const right = Math.min(w * at, (wide - x) / k * at);
    const bottom = Math.min(h2 * at, (high - y) / k * at);
    set(this.frame, {
      x: left + 0.5,
      y: top + 0.5,
      width: Math.max(2, right - left - 1),
      height: Math.max(2, bottom - top - 1)
    });
  }
};

// src/panel.js
var Panel = class {
  /**
   * @param {import("./types.js").View} view
   * @param {{menu: HTMLElement, legend: () => HTMLElement, go: (name: string) => void, offers: (offers: any[], names: string[]) => void}} parts
   */
  constructor(view, parts2) {
    this.view = view;
    this.parts = parts2;
    this.head = h("header", { class: "nbs-head-line", "aria-live": "polite" });
    this.facts = h("section", { class: "nbs-facts" });
    this.hint = h("p", { class: "nbs-hint", hidden: true });
    this.el = h("div", { class: "nbs-panel-body" }, this.head, this.hint, parts2.menu, this.facts);
    this.asked = 0;
    this.key = "";
    this.timer = /** @type {any} */
    0;
    view.signal.addEventListener("abort", () => clearTimeout(this.timer));
  }
  /** Asks for what is selected now; of several questions only the last answer counts. @param {string[]} names */
  show(names) {
    const key = names.join("\n");
    if (key !== this.key) this.el.scrollTop = 0;
    this.key = key;
    clearTimeout(this.timer);
    this.view.root.dataset.asking = "true";
    this.timer = setTimeout(() => this.#ask(names), 30);
  }
  /** @param {string[]} names */
  async #ask(names) {
    const mine = ++this.asked;
    const late = setTimeout(() => {
      if (mine === this.asked) this.facts.classList.add("nbs-stale");
    }, 200);
    try {
      const facts = await this.view.ask("facts", { names });
      if (mine === this.asked) this.#fill(facts);
      clearTimeout(late);
      this.facts.classList.remove("nbs-stale");
      const past = this.view.model.get("_view") === "before";
      this.hint.textContent = !names.length ? "Click a layer to see what can be done with it." : past ? "This is the model as it was. Switch to After to edit." : "";
      this.hint.hidden = !this.hint.textContent;
      let offers = (
        /** @type {import("./types.js").Offer[]} */
        []
      );
      do {
        if (!past) offers = await this.view.ask("offers", { names });
        if (mine !== this.asked) return;
        const trying = offers.some((offer) => offer.pending);
        if (!trying) delete this.view.root.dataset.asking;
        this.parts.offers(offers, names);
        if (!trying) break;
      } while (!this.view.signal.aborted);
    } catch (error) {
      if (mine !== this.asked || this.view.signal.aborted) return;
      delete this.view.root.dataset.asking;
      this.parts.offers([], names);
      if (
        /** @type {any} */
        error.type === "KernelGone"
      ) return;
      const title2 = names.length === 1 ? names[0] : `${names.length} selected`;
      this.head.replaceChildren(h("h3", {}, names.length ? title2 : "Model"));
      this.facts.replaceChildren(
        h("p", { class: "nbs-problem" }, String(
          /** @type {Error} */
          error.message
        ))
      );
    } finally {
      clearTimeout(late);
      if (mine === this.asked) {
        this.facts.classList.remove("nbs-stale");
        delete this.view.root.dataset.asking;
      }
    }
  }
  /** @param {any} facts */
  #fill(facts) {
    const { signal } = this.view;
    const rows = (facts.rows ?? []).flatMap((row) => {
      const links = (row.links ?? []).map((link) => button({ label: link.text, class: "nbs-link", click: () => this.parts.go(link.name), signal }));
      const many = links.length > 8 ? h("details", {}, h("summary", {}, `${links.length} names`), ...links) : null;
      return [
        h("dt", {}, row.label),
        h("dd", {}, row.value ? h("span", {}, row.value) : null, ...many ? [many] : links)
      ];
    });
    const source = facts.source ? h(
      "div",
      { class: "nbs-source" },
      h("span", { class: "nbs-place" }, facts.source.place),
      h("code", {}, facts.source.line)
    ) : null;
    this.head.replaceChildren(
      h("h3", { title: facts.title }, facts.title),
      h("span", { class: "nbs-kind" }, facts.subtitle ?? facts.type ?? "")
    );
    this.facts.replaceChildren(
      h("dl", {}, ...rows),
      source ?? "",
      facts.text ? h("p", { class: "nbs-explain" }, facts.text) : "",
      facts.names?.[0] === "" ? this.parts.legend() : ""
    );
  }
};

// src/protocol.js
var LIMIT = 900;
var PATIENCE = 2500;
var RequestError = class extends Error {
  /**
   * @param {string} message
   * @param {string} type
   */
  constructor(message, type) {
    super(message);
    this.type = type;
  }
};
var GONE = "The kernel was restarted or has ended: run the cells up to this one again to go on. The code stays and can be emitted.";
function connect(model, events = {}) {
  let last = 0;
  const waiting = /* @__PURE__ */ new Map();
  const tag = Math.random().toString(36).slice(2, 8);
  let slow = 0;
  let lost = false;
  let gone = false;
  function tell(now) {
    if (now !== gone) events.onGone?.(gone = now);
  }
  function lose(now) {
    lost = now;
    tell(now);
    if (lost) for (const { drop } of [...waiting.values()]) drop();
  }
  function hear(message) {
    const [from, number] = String(message?.id ?? "").split(":");
    if (from !== tag) return;
    lost = false;
    tell(false);
    waiting.get(Number(number))?.done(message);
  }
  model.on("msg:custom", hear);
  function ask(method, params = {}, options = {}) {
    const number = ++last;
    const limit = options.timeout ?? LIMIT;
    return new Promise((resolve, reject) => {
      let told = false;
      const late = setTimeout(() => {
        told = true;
        if (slow++ === 0) events.onSlow?.(true);
      }, PATIENCE);
      const end = setTimeout(() => {
        const message = `No answer from the kernel to “${method}” in ${limit} s. It may be busy or gone.`;
        finish(() => reject(new RequestError(message, "Timeout")));
      }, limit * 1e3);
      function finish(settle) {
        clearTimeout(late);
        clearTimeout(end);
        waiting.delete(number);
        events.onCount?.(waiting.size);
        if (told && --slow === 0) events.onSlow?.(false);
        settle();
      }
      const drop = () => finish(() => reject(new RequestError(GONE, "KernelGone")));
      waiting.set(number, {
        drop,
        done: (reply) => finish(() => {
          if (reply.ok) resolve(reply.result);
          else reject(new RequestError(reply.error?.message ?? "unknown error", reply.error?.type ?? ""));
        })
      });
      events.onCount?.(waiting.size);
      const failed = () => {
        if (!waiting.has(number)) return;
        tell(true);
        drop();
      };
      if (lost) {
        drop();
        return;
      }
      try {
        const sent = (
          /** @type {any} */
          model.send({ id: `${tag}:${number}`, method, params })
        );
        if (typeof sent?.catch === "function") sent.catch(failed);
      } catch {
        failed();
      }
    });
  }
  return {
    ask,
    lose,
    close() {
      model.off("msg:custom", hear);
      for (const { done } of [...waiting.values()])
        done({ ok: false, error: { type: "Closed", message: "The picture was closed." } });
    }
  };
}
function save(model) {
  try {
    model.save_changes();
  } catch {
  }
}

// src/scene.js
var STACK = 4;
var views = 0;
var Painter = class {
  constructor() {
    const tag = ++views;
    this.id = (name) => `nbs-${name}-${tag}`;
    this.svg = s("svg", { class: "nbs-scene", role: "group", "aria-label": "Model" });
    const arrows = ["edge", "skip", "lit"].map((name) => s("marker", {
      id: this.id(name),
      class: `nbs-arrow nbs-arrow-${name}`,
      viewBox: "0 0 8 8",
      refX: 7,
      refY: 4,
      markerWidth: name === "edge" ? 6.5 : 7.5,
      markerHeight: name === "edge" ? 6.5 : 7.5,
      orient: "auto",
      markerUnits: "userSpaceOnUse"
    }, s("path", { d: "M0,.6L8,4L0,7.4z" })));
    this.svg.append(s("defs", {}, ...arrows));
    this.shown = /* @__PURE__ */ new Map();
    this.names = /* @__PURE__ */ new Map();
    this.values = /* @__PURE__ */ new Map();
    this.order = [];
  }
  /** @param {Scene} scene */
  draw(scene) {
    const first = this.shown.size === 0;
    this.svg.classList.toggle("nbs-still", first);
    set(this.svg, { width: scene.width, height: scene.height });
    this.before = this.shown;
    this.shown = /* @__PURE__ */ new Map();
    this.names = /* @__PURE__ */ new Map();
    this.values = /* @__PURE__ */ new Map();
    this.order = [];
    const root = this.#group(scene.group, null, 0, 0);
    if (root.el.parentNode !== this.svg) this.svg.append(root.el);
    for (const [key, old] of this.before) if (!this.shown.has(key)) old.el.remove();
    this.before = void 0;
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
    const { el, parts: parts2 } = old?.kind === kind ? old : make();
    if (old && old.el !== el) old.el.remove();
    const item = { key, kind, name, data, el, parts: parts2, parent, x, y, w: data.w, h: data.h, order: 0 };
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
      const parts3 = {
        back: s("rect", { class: "nbs-back", rx: 10, x: 0, y: 0 }),
        edges: s("g", { class: "nbs-edges" }),
        head: s("path", { class: "nbs-head" }),
        title: title(),
        items: s("g", { class: "nbs-items" }),
        outline: s("rect", { class: "nbs-outline", rx: 10, x: 0, y: 0 })
      };
      const el2 = s(
        "g",
        { class: "nbs-module module" },
        parts3.back,
        parts3.edges,
        parts3.head,
        parts3.title.el,
        parts3.items,
        parts3.outline
      );
      return { el: el2, parts: parts3 };
    });
    const { el, parts: parts2 } = item;
    if (!root) place(el, data.x, data.y);
    el.classList.toggle("nbs-root-group", root);
    el.dataset.depth = String(Math.min(data.depth, 4));
    const { w, h: h2 } = data;
    for (const part of [parts2.back, parts2.outline]) set(part, { width: w, height: h2 });
    if (!root) {
      const head = data.head - 2;
      const up = head - 10;
      set(parts2.head, {
        d: `M0.5,${head}v${-up}a9.5,9.5 0 0 1 9.5,-9.5h${w - 20}a9.5,9.5 0 0 1 9.5,9.5v${up}z`
      });
      fillTitle(parts2.title, data, { open: true, right: w - 10, base: 15, left: 14 });
      badge(el, parts2, data.badge, w - 4, 0);
    }
    this.#edges(item, data.edges ?? []);
    const children = data.items.map((child) => {
      if (child.kind === "group") return this.#group(child, data.key, x + child.x, y + child.y);
      if (child.kind === "card") return this.#card(child, data.key, x + child.x, y + child.y);
      if (child.kind === "box") return this.#box(child, data.key, x + child.x, y + child.y);
      return this.#pill(child, data.key, x + child.x, y + child.y);
    });
    this.#arrange(parts2.items, children);
    this.#more(item, data.items);
    return item;
  }
  /**
   * Chips that stand for edges left out where too many meet; their ways show under the pointer.
   * @param {Shown} item
   * @param {import("./types.js").Item[]} items
   */
  #more(item, items) {
    const chips = items.flatMap((child) => child.kind !== "group" && child.more ? [child.more] : []);
    item.parts.more?.remove();
    item.parts.more = null;
    if (!chips.length) return;
    item.parts.more = s("g", {}, ...chips.map((chip) => s(
      "g",
      { class: "nbs-more" },
      ...chip.edges.map((edge) => s("path", { class: "nbs-edge", d: edge.d, "data-value": edge.value })),
      s("rect", { x: chip.x, y: chip.y, width: chip.w, height: chip.h, rx: 7 }),
      s("text", { x: chip.x + chip.w / 2, y: chip.y + 10.5, "text-anchor": "middle" }, chip.label)
    )));
    item.el.insertBefore(item.parts.more, item.parts.outline);
  }
  /**
   * @param {Shown} item
   * @param {import("./types.js").Edge[]} edges
   */
  #edges(item, edges) {
    const layer = item.parts.edges;
    const old = item.parts.paths ?? /* @__PURE__ */ new Map();
    const paths = /* @__PURE__ */ new Map();
    for (const edge of [...edges].sort((a, b) => Number(a.skip ?? 0) - Number(b.skip ?? 0))) {
      const path = old.get(edge.key) ?? s("path", { class: "nbs-edge" });
      old.delete(edge.key);
      paths.set(edge.key, path);
      layer.append(path);
      if (path.hasAttribute("d") && form2(path.getAttribute("d")) !== form2(edge.d)) fade(path);
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
      const parts2 = { back: s("rect", { class: "nbs-back", rx: 7 }), rows: s("g") };
      return { el: s("g", { class: "nbs-card" }, parts2.back, parts2.rows), parts: parts2 };
    });
    place(item.el, data.x, data.y);
    set(item.parts.back, { width: data.w, height: data.h });
    const rows = data.rows.map((row, i) => this.#row(row, data, parent, x, y + row.y, { first: i === 0, last: i === data.rows.length - 1 }));
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
      const parts3 = {
        hit: s("rect", { class: "nbs-hit", x: 0, y: 0 }),
        strip: s("path", { class: "nbs-strip" }),
        line: s("path", { class: "nbs-line" }),
        title: title(),
        shape: s("text", { class: "nbs-shape", "text-anchor": "end" }),
        outline: s("rect", { class: "nbs-outline", x: 0.5, y: 0.5 })
      };
      const el2 = s(
        "g",
        { class: "nbs-row" },
        parts3.hit,
        parts3.line,
        parts3.strip,
        parts3.title.el,
        parts3.shape,
        parts3.outline
      );
      return { el: el2, parts: parts3 };
    });
    const { el, parts: parts2 } = item;
    const { w } = card;
    place(el, 0, row.y);
    el.dataset.family = row.family;
    el.classList.toggle("nbs-failed", Boolean(row.failed));
    const a = where.first ? 7 : 0;
    const b = where.last ? 7 : 0;
    set(parts2.hit, { width: w, height: row.h, rx: a || b ? 7 : 0 });
    set(parts2.outline, { width: w - 1, height: row.h - 1, rx: 6.5 });
    set(parts2.line, { d: where.first ? "M8,0H8" : `M8,0H${w}` });
    set(parts2.strip, {
      d: `M6,0H${a}${a ? "a7,7 0 0 0 -7,7" : ""}V${row.h - b}${b ? "a7,7 0 0 0 7,7" : ""}H6z`
    });
    const right = w - 9 - (card.column ?? 0);
    fillTitle(parts2.title, row, { right: w - 9, base: row.h / 2 + 4, left: 14 });
    set(parts2.shape, { x: right, y: row.h / 2 + 4 });
    text(parts2.shape, row.shape ?? "");
    badge(el, parts2, row.badge, w - 4, 1);
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
      const parts3 = {
        under: s("rect", { class: "nbs-under", rx: 9, x: STACK, y: STACK }),
        back: s("rect", { class: "nbs-back", rx: 9 }),
        title: title(),
        shape: s("text", { class: "nbs-shape" }),
        outline: s("rect", { class: "nbs-outline", rx: 9 })
      };
      const el2 = s(
        "g",
        { class: "nbs-box" },
        parts3.under,
        parts3.back,
        parts3.title.el,
        parts3.shape,
        parts3.outline
      );
      return { el: el2, parts: parts3 };
    });
    const { el, parts: parts2 } = item;
    place(el, data.x, data.y);
    const w = data.w - STACK;
    const h2 = data.h - STACK;
    for (const part of [parts2.under, parts2.back, parts2.outline]) set(part, { width: w, height: h2 });
    fillTitle(parts2.title, data, { open: false, right: w - 10, base: 17, left: 13, low: 33 });
    set(parts2.shape, { x: 23, y: 33 });
    text(parts2.shape, data.shape ? `→ ${data.shape}` : "");
    badge(el, parts2, data.badge, w - 3, 0);
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
      const parts3 = {
        back: s("rect", { class: "nbs-back" }),
        name: s("text", { class: "nbs-name" }),
        shape: s("text", { class: "nbs-shape", "text-anchor": "end" }),
        outline: s("rect", { class: "nbs-outline", x: -3, y: -3 })
      };
      const el2 = s("g", { class: "nbs-pill" }, parts3.back, parts3.name, parts3.shape, parts3.outline);
      return { el: el2, parts: parts3 };
    });
    const { el, parts: parts2 } = item;
    const { w, h: h2 } = data;
    place(el, data.x, data.y);
    set(parts2.back, { width: w, height: h2, rx: h2 / 2 });
    set(parts2.outline, { width: w + 6, height: h2 + 6, rx: h2 / 2 + 3 });
    const base = h2 / 2 + 4;
    set(parts2.name, { x: data.shape ? 14 : w / 2, y: base, "text-anchor": data.shape ? "start" : "middle" });
    text(parts2.name, data.name);
    set(parts2.shape, { x: w - 14, y: base });
    text(parts2.shape, data.shape ?? "");
    badge(el, parts2, data.badge, w - 2, 0);
    return item;
  }
};
function title() {
  const parts2 = {
    chip: s(
      "g",
      { class: "nbs-chip" },
      s("rect", { width: 24, height: 22, x: -10, y: -11 }),
      s("path", { d: "M-3.5,-4L.5,0L-3.5,4" })
    ),
    name: s("tspan", { class: "nbs-name" }),
    type: s("tspan", { class: "nbs-type", dx: 6 }),
    times: s("tspan", { class: "nbs-times", dx: 6 }),
    params: s("text", { class: "nbs-params", "text-anchor": "end" }),
    line: (
      /** @type {any} */
      null
    ),
    el: (
      /** @type {any} */
      null
    )
  };
  parts2.line = s("text", {}, parts2.name, parts2.type, parts2.times);
  parts2.el = s("g", { class: "nbs-title" }, parts2.chip, parts2.line, parts2.params);
  return parts2;
}
function fillTitle(parts2, data, where) {
  const foldable = where.open !== void 0;
  set(parts2.chip, { display: foldable ? null : "none" });
  parts2.chip.classList.toggle("nbs-open", where.open === true);
  parts2.chip.style.transform = `translate(${where.left}px, ${where.base - 4}px)`;
  set(parts2.line, { x: foldable ? where.left + 10 : where.left, y: where.base });
  text(parts2.name, data.name);
  text(parts2.type, data.type ?? "");
  text(parts2.times, data.count > 1 ? `×${data.count}` : "");
  set(parts2.params, { x: where.right, y: where.low ?? where.base });
  text(parts2.params, data.params ?? "");
}
function badge(el, parts2, data, x, y) {
  if (!data) {
    parts2.badge?.remove();
    parts2.badge = null;
    return;
  }
  if (!parts2.badge) {
    parts2.badge = s(
      "g",
      { class: "nbs-badge" },
      s("path", { d: "M0,-8L8.5,6.5H-8.5z" }),
      s("text", { "text-anchor": "middle", y: 4.5 }),
      s("title")
    );
    el.append(parts2.badge);
  }
  parts2.badge.style.transform = `translate(${x}px, ${y}px)`;
  text(parts2.badge.children[1], data.count > 1 ? String(data.count) : "!");
  text(parts2.badge.children[2], data.text);
}
function place(el, x, y) {
  const to = `translate(${x}px, ${y}px)`;
  if (el.style.transform !== to) el.style.transform = to;
}
var form2 = (d) => (d ?? "").replace(/[^A-Za-z]/g, "");
function fade(path) {
  path.animate?.([{ opacity: 0 }, { opacity: 1 }], { duration: 280, easing: "ease-out" });
}

// src/selection.js
var Selection = class {
  /**
   * @param {import("./types.js").View} view
   * @param {import("./scene.js").Painter} painter
   * @param {HTMLElement} canvas
   * @param {{dragged: boolean}} camera
   * @param {{toggle: (scope: string, recursive?: boolean) => void, tip: HTMLElement}} parts
   */
  constructor(view, painter, canvas, camera, parts2) {
    this.view = view;
    this.painter = painter;
    this.tip = parts2.tip;
    this.toggle = parts2.toggle;
    this.picking = null;
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
    view.root.addEventListener("keydown", () => this.#light(null), { signal, capture: true });
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
    const el = (
      /** @type {Element} */
      event.target.closest?.("[data-name]")
    );
    const key = (
      /** @type {SVGGElement | null} */
      el?.dataset.key
    );
    const item = key === void 0 ? void 0 : this.painter.shown.get(key);
    return !item || item.kind === "group" && item.parent === null ? null : item;
  }
  /** @param {MouseEvent} event */
  #click(event) {
    const target = (
      /** @type {Element} */
      event.target
    );
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
    const target = (
      /** @type {SVGElement} */
      event.target
    );
    const badge2 = target.closest?.(".nbs-badge");
    const item = this.#at(event);
    if (target.classList?.contains("nbs-edge")) {
      this.#light(target.dataset.value ?? null, target.dataset.shape);
      return;
    }
    const note = badge2 ? "" : item?.kind === "row" ? item.data.tip : "";
    this.#light(item && item.kind !== "group" ? this.#valueOf(item) : null, note);
  }
  /**
   * Lights the whole way of one value.
   * @param {string | null} value
   * @param {string} [note]
   */
  #light(value, note = "") {
    for (const el of this.lit) el.classList.remove("nbs-lit");
    for (const el of this.lit) this.#arrow(
      /** @type {SVGElement} */
      el,
      false
    );
    this.lit = value === null ? [] : [...this.painter.values.get(value) ?? []];
    for (const el of this.lit) el.classList.add("nbs-lit");
    for (const el of this.lit) this.#arrow(
      /** @type {SVGElement} */
      el,
      true
    );
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
    const box = (
      /** @type {HTMLElement} */
      this.tip.parentElement.getBoundingClientRect()
    );
    const { offsetWidth: wide, offsetHeight: high } = this.tip;
    const item = this.#at(event);
    let x = event.clientX - box.left + 14;
    let y = event.clientY - box.top + 16;
    if (item?.kind === "row") {
      const row = item.el.getBoundingClientRect();
      y = row.top - box.top;
      x = row.right - box.left + 10;
      if (x + wide > box.width - 6) x = row.left - box.left - wide - 10;
      if (x < 6) {
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
    return edges.find((edge) => edge.from === item.key)?.value ?? null;
  }
};

// src/state.js
var states = /* @__PURE__ */ new Map();
function stateOf(id) {
  let state = states.get(id);
  if (!state) {
    state = { pan: null, memo: {}, height: null, emitted: null };
    states.set(id, state);
  }
  return state;
}

// src/steps.js
var FAR = 4;
var Steps = class {
  /**
   * @param {import("./types.js").View} view
   * @param {{edit: (form: any, number: number) => void}} parts
   */
  constructor(view, parts2) {
    this.view = view;
    this.parts = parts2;
    const { signal } = view;
    this.asked = /* @__PURE__ */ new Set();
    this.dragged = false;
    this.undoButton = button({ icon: "undo", title: "Undo (Ctrl+Z)", class: "nbs-undo", click: () => this.undo(), signal });
    this.redoButton = button({ icon: "redo", title: "Redo (Ctrl+Shift+Z)", class: "nbs-redo", click: () => this.redo(), signal });
    this.count = h("span", { class: "nbs-count" });
    this.list = h("ol", {});
    this.el = h(
      "section",
      { class: "nbs-steps", "aria-label": "Steps" },
      h("header", {}, h("h4", {}, "Steps"), this.count, h("span", { class: "nbs-space" }), this.undoButton, this.redoButton),
      this.list
    );
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
    if (params.uid !== void 0 && this.asked.has(key)) return void 0;
    this.asked.add(key);
    this.view.busy(true);
    try {
      return await this.view.ask(method, params);
    } catch (error) {
      this.view.fail(error);
      this.draw();
      return void 0;
    } finally {
      this.asked.delete(key);
      this.view.busy(false);
    }
  }
  draw() {
    const steps = this.view.model.get("steps") ?? [];
    const can = this.view.model.get("_can") ?? {};
    const held = (
      /** @type {HTMLElement | null} */
      this.list.contains(document.activeElement) ? document.activeElement : null
    );
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
      type: "checkbox",
      title: step.enabled ? "Switch off" : "Switch on",
      "data-what": "on",
      "aria-label": `Step ${step.text} is on`,
      on: { change: () => this.#ask("toggle_step", { uid: step.uid }) },
      signal
    });
    on.checked = step.enabled;
    const note = step.state === "failed" ? step.reason : step.detail;
    const text3 = h("button", {
      type: "button",
      class: "nbs-step-text",
      title: "Change this step",
      "data-what": "text",
      on: { click: () => this.#edit(step, i) },
      signal
    }, h("span", {}, step.text), note ? h("small", {}, note) : null);
    const grip = count < 2 ? null : h("button", {
      type: "button",
      class: "nbs-grip",
      title: "Move: drag, or arrow keys",
      "data-what": "grip",
      "aria-label": `Move step ${i + 1} of ${count}: arrow up, arrow down`,
      on: {
        keydown: (event) => {
          const to = i + (event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0);
          if (to === i) return;
          event.preventDefault();
          if (to >= 0 && to < count) this.#ask("move_step", { uid: step.uid, to });
        }
      },
      signal
    }, icon("grip"));
    const drop = button({
      icon: "cross",
      title: "Drop this step",
      class: "nbs-drop",
      click: () => this.#ask("drop_step", { uid: step.uid }),
      signal
    });
    const li = h("li", {
      class: `nbs-step nbs-step-${step.state}`,
      "data-uid": step.uid,
      on: { pointerdown: (event) => this.#press(event, li, step, i) },
      signal
    }, grip, on, text3, drop);
    return li;
  }
  /** Opens the form of a step, filled in. @param {Step} step @param {number} i */
  async #edit(step, i) {
    if (this.dragged) return;
    const form3 = await this.#ask("step_form", { uid: step.uid });
    if (form3) this.parts.edit(form3, i + 1);
  }
  /**
   * A press that goes on to move drags the step to another place.
   * @param {PointerEvent} event
   * @param {HTMLElement} li
   * @param {Step} step
   * @param {number} from
   */
  #press(event, li, step, from) {
    const target = (
      /** @type {Element} */
      event.target
    );
    if (event.button || target.closest("input, .nbs-drop")) return;
    this.dragged = false;
    const rows = (
      /** @type {HTMLElement[]} */
      [...this.list.children]
    );
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
        this.dragged = false;
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
};

// src/toolbar.js
var Toolbar = class {
  /**
   * @param {import("./types.js").View} view
   * @param {{depth: (by: number) => void, zoom: (by: number) => void, fit: () => void, top: () => void,
   *   go: (name: string) => void, found: (names: string[]) => void, look: (which: string) => void, help: () => void}} parts
   */
  constructor(view, parts2) {
    this.view = view;
    this.parts = parts2;
    const { signal } = view;
    this.hits = [];
    this.at = -1;
    this.asked = 0;
    this.pending = false;
    this.wanted = 0;
    this.input = h("input", {
      type: "search",
      class: "nbs-input nbs-search",
      placeholder: "Search layers",
      spellcheck: "false",
      "aria-label": "Search layers",
      title: "Search by name or type ( / )",
      on: {
        input: () => this.#search(),
        keydown: (event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          if (this.pending) this.wanted = event.shiftKey ? -1 : 1;
          else this.#next(event.shiftKey ? -1 : 1);
        }
      },
      signal
    });
    this.number = h("span", { class: "nbs-hits" });
    this.scale = h("button", { type: "button", class: "nbs-button nbs-scale", title: "Back to 100 %", on: { click: () => parts2.zoom(0) }, signal });
    this.looks = h("div", { class: "nbs-segment nbs-looks", hidden: true });
    this.working = h("span", { class: "nbs-spinner", hidden: true, role: "status", "aria-label": "working" });
    this.el = h(
      "div",
      { class: "nbs-toolbar", role: "toolbar", "aria-label": "Picture" },
      h("div", { class: "nbs-searchbox" }, icon("search"), this.input, this.number),
      h(
        "div",
        { class: "nbs-segment" },
        button({ icon: "shallower", title: "Close one level", class: "nbs-shallower", click: () => parts2.depth(-1), signal }),
        button({ icon: "deeper", title: "Open one level", class: "nbs-deeper", click: () => parts2.depth(1), signal })
      ),
      this.looks,
      h("span", { class: "nbs-space" }),
      this.working,
      h(
        "div",
        { class: "nbs-segment" },
        button({ icon: "minus", title: "Zoom out (−)", click: () => parts2.zoom(0.8), signal }),
        this.scale,
        button({ icon: "plus", title: "Zoom in (+)", click: () => parts2.zoom(1.25), signal })
      ),
      button({ icon: "fit", title: "Show all (F)", class: "nbs-fit", click: () => parts2.fit(), signal }),
      button({ icon: "top", title: "To the top", class: "nbs-top", click: () => parts2.top(), signal }),
      button({ icon: "help", title: "Keys and gestures", class: "nbs-keys", click: () => parts2.help(), signal })
    );
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
    this.looks.replaceChildren(...names.map((name) => h("button", {
      type: "button",
      class: "nbs-button",
      "data-look": name,
      "aria-pressed": String(name === shown),
      on: { click: () => this.parts.look(name) },
      signal: this.view.signal
    }, name === "before" ? "Before" : name === "after" ? "After" : name)));
  }
};

// src/view.js
function open(model, el) {
  const controller = new AbortController();
  const { signal } = controller;
  const state = stateOf(model.get("_widget_id"));
  const root = h("div", { class: "nbs-root", "data-lm-suppress-shortcuts": "true" });
  const canvas = h("div", {
    class: "nbs-canvas",
    tabindex: 0,
    role: "application",
    "aria-label": "Picture of the model. Arrow keys walk, Enter shows the operations, slash searches."
  });
  const stage = h("div", { class: "nbs-stage" });
  const toast = h("div", { class: "nbs-toast", role: "status" });
  const banner = h("div", { class: "nbs-banner nbs-overlay", role: "alert", hidden: true });
  const tip = h("div", { class: "nbs-tip nbs-overlay" });
  let working = 0;
  let toasting = (
    /** @type {any} */
    0
  );
  let slow = false;
  let gone = false;
  const link = connect(model, {
    onCount: (waiting) => {
      root.dataset.waiting = String(waiting);
    },
    onSlow: (now) => {
      slow = now;
      announce();
    },
    onGone: (now) => {
      gone = now;
      announce();
      if (gone) menu.show([], []);
      else panel.show(selection.names);
    }
  });
  function announce() {
    banner.textContent = gone ? GONE : slow ? "The kernel is at work; this waits for it." : "";
    banner.hidden = banner.textContent === "";
    banner.dataset.kind = gone ? "error" : "info";
    root.classList.toggle("nbs-gone", gone);
  }
  const view = {
    model,
    el,
    root,
    signal,
    state,
    ask: link.ask,
    say(text3, kind = "info") {
      toast.textContent = text3;
      toast.dataset.kind = kind;
      toast.classList.add("nbs-shown");
      clearTimeout(toasting);
      toasting = setTimeout(() => toast.classList.remove("nbs-shown"), kind === "error" ? 9e3 : 4500);
    },
    fail(error) {
      const { type, message } = (
        /** @type {any} */
        error
      );
      if (signal.aborted || type === "KernelGone") return;
      view.say(String(message), "error");
    },
    busy(on) {
      working += on ? 1 : -1;
      toolbar.busy(working > 0);
    }
  };
  const painter = new Painter();
  stage.append(painter.svg);
  const camera = new Camera(canvas, stage, state, signal, (k) => {
    toolbar.zoomed(k);
    minimap.follow();
  });
  const minimap = new Minimap(canvas, camera, signal);
  const keys = help();
  canvas.append(stage, minimap.el, keys, tip, banner);
  const toolbar = new Toolbar(view, {
    depth: (by) => changeDepth(by),
    zoom: (by) => camera.zoom(by || 1 / camera.at.k, void 0, true),
    fit: () => camera.fit(),
    top: () => {
      state.pan = null;
      stage.classList.add("nbs-smooth");
      camera.start();
    },
    go,
    found: (names) => markAll("nbs-found", names),
    look: (which) => request("view", { which }),
    help: () => {
      keys.hidden = !keys.hidden;
    }
  });
  const selection = new Selection(view, painter, canvas, camera, { toggle, tip });
  const menu = new Menu(view, { pick, mark: (names) => markAll("nbs-touched", names), done: () => {
  } });
  const panel = new Panel(view, { menu: menu.el, go, legend: () => legend(painter), offers: (offers, names) => menu.show(offers, names) });
  const steps = new Steps(view, {
    edit: (form3, number) => menu.open({ ...form3, label: `Step ${number}: ${form3.label}` })
  });
  const code2 = new Code(view);
  const report = new Report(view);
  const notice = h("div", { class: "nbs-notice", role: "status", hidden: true });
  let dismissed = "";
  function note() {
    const { kind, text: text3 } = model.get("_notice") ?? {};
    notice.hidden = !text3 || text3 === dismissed;
    if (notice.hidden) return;
    notice.dataset.kind = kind;
    const choice2 = kind !== "changed" ? [] : [
      button({ label: "Go on from it", title: "Start again with the edited model, without steps", class: "nbs-rebase", click: () => request("rebase", {}), signal }),
      button({ label: "Keep the recipe", class: "nbs-keep", click: () => {
        dismissed = text3;
        note();
      }, signal })
    ];
    notice.replaceChildren(icon(kind === "failed" ? "warn" : "info"), h("span", {}, text3), ...choice2);
  }
  root.append(
    h("div", { class: "nbs-top-bars" }, toolbar.el, notice),
    h("div", { class: "nbs-main" }, canvas, h("aside", { class: "nbs-panel" }, panel.el, steps.el)),
    h("div", { class: "nbs-bottom" }, code2.el, report.el, toast)
  );
  el.append(root);
  listenToKeys(view, canvas, {
    painter,
    selection,
    camera,
    toggle,
    search: () => toolbar.focus(),
    menu: () => menu.focus(),
    escape: () => {
      if (!keys.hidden) {
        keys.hidden = true;
        return true;
      }
      if (selection.picking) {
        endPick();
        return true;
      }
      if (menu.isOpen) {
        menu.close();
        return true;
      }
      return toolbar.clear();
    },
    undo: () => steps.undo(),
    redo: () => steps.redo()
  });
  let anchor = null;
  let painted = (
    /** @type {any} */
    null
  );
  function paint() {
    const scene = model.get("_scene");
    if (!scene?.group) return;
    painter.draw(scene);
    camera.resize(scene);
    painted = scene;
    minimap.draw(painter);
    const item = anchor ? painter.find(anchor.scope) : void 0;
    if (anchor && item) camera.hold(item, anchor);
    else camera.recover();
    anchor = null;
    selection.mark();
  }
  function hold(scope) {
    const item = painter.find(scope);
    if (!item) return;
    const { x, y, k } = camera.at;
    anchor = { scope, x: item.x * k + x, y: item.y * k + y };
  }
  function toggle(scope, recursive = false) {
    hold(scope);
    request("toggle", { scope, recursive });
  }
  function changeDepth(by) {
    let open2 = 0;
    for (const item of painter.order) if (item.kind === "group") open2 = Math.max(open2, item.data.depth);
    request("expand_to", { depth: Math.max(0, open2 + by) });
  }
  async function request(method, params) {
    view.busy(true);
    try {
      await link.ask(method, params);
    } catch (error) {
      view.fail(error);
    } finally {
      view.busy(false);
    }
  }
  let wanted = (
    /** @type {string | null} */
    null
  );
  function go(name) {
    wanted = name;
    selection.set([name]);
    look();
  }
  function look() {
    if (wanted === null) return;
    const item = painter.find(wanted);
    if (!item) return;
    wanted = null;
    camera.show(item.kind === "group" ? { ...item, h: Math.min(item.h, item.data.head + 120) } : item);
  }
  function markAll(mark, names) {
    for (const old of painter.svg.querySelectorAll(`.${mark}`)) old.classList.remove(mark);
    for (const name of names)
      for (const item of painter.names.get(name) ?? []) item.el.classList.add(mark);
  }
  function pick(done) {
    selection.picking = (name) => {
      endPick();
      done(name);
    };
    canvas.classList.add("nbs-picking");
    view.say("Click the place in the picture. Esc cancels.");
  }
  function endPick() {
    selection.picking = null;
    canvas.classList.remove("nbs-picking");
  }
  const watched = [
    ["change:_scene", () => {
      paint();
      look();
    }],
    ["change:selection", () => {
      selection.mark();
      menu.wait();
      panel.show(selection.names);
    }],
    ["change:code", () => code2.draw()],
    ["change:_style", () => code2.drawStyle()],
    ["change:report", () => {
      report.draw();
      code2.drawFate();
    }],
    ["change:_checking", () => {
      report.draw();
      code2.drawFate();
    }],
    ["change:steps", () => {
      steps.draw();
      report.draw();
      fold();
      menu.stale();
      panel.show(selection.names);
    }],
    ["change:_can", () => steps.draw()],
    ["change:_views", fold],
    ["change:_view", () => {
      fold();
      panel.show(selection.names);
    }],
    ["change:theme", dress],
    ["change:_notice", note]
  ];
  for (const [name, handler] of watched) model.on(name, handler);
  function fold() {
    const edited = (model.get("steps") ?? []).length > 0;
    root.classList.toggle("nbs-unedited", !edited);
    toolbar.look(edited, model.get("_views") ?? ["before", "after"], model.get("_view") ?? "after");
  }
  function dress() {
    const theme = model.get("theme");
    root.classList.toggle("nbs-dark", theme === "dark" || theme !== "light" && isDark());
  }
  dress();
  watchTheme(dress, signal);
  watchKernel(model, link.lose, signal);
  fold();
  note();
  paint();
  let placed = false;
  const settle = () => {
    if (placed || !canvas.clientWidth || !painted) return;
    placed = true;
    camera.start();
    minimap.draw(painter);
  };
  let wide = canvas.clientWidth;
  const sizes = globalThis.ResizeObserver ? new ResizeObserver(() => {
    const by = canvas.clientWidth - wide;
    if (placed && by && wide && canvas.clientWidth) camera.go({ ...camera.at, x: camera.at.x + by / 2 });
    wide = canvas.clientWidth;
    settle();
    minimap.draw(painter);
  }) : null;
  sizes?.observe(canvas);
  settle();
  panel.show(selection.names);
  return () => {
    controller.abort();
    sizes?.disconnect();
    clearTimeout(toasting);
    for (const [name, handler] of watched) model.off(name, handler);
    link.close();
    root.remove();
  };
}

// src/index.js
var src_default = {
  /** @param {{model: import("./types.js").Model, el: HTMLElement}} context */
  render({ model, el }) {
    return open(model, el);
  }
};
export {
  src_default as default
};
