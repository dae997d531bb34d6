// @ts-check
// All that is known of the notebook front end: where the widget stands, and how a cell gets below it.

/** @typedef {import("./types.js").Model} Model */

const VIEW = "application/vnd.jupyter.widget-view+json";
const NAME = "nbsurgery";
const DEEP = 6; // boxes in boxes in outputs: as far as the search for a widget goes

/**
 * The open notebook, where the host has the interface that emitting needs; else null.
 * @param {Model} model
 * @returns {any}
 */
export function notebook(model) {
  const context = model.widget_manager?.context;
  const shared = context?.model?.sharedModel;
  const able = typeof shared?.insertCell === "function" && typeof shared?.transact === "function";
  return context?.model?.cells && able ? context : null;
}

/** @param {any} context @returns {any[]} */
const cellsOf = (context) =>
  Array.from({ length: context.model.cells.length }, (_, i) => context.model.cells.get(i));

/**
 * @param {any} manager
 * @param {any} data an output's data
 * @param {string} id
 * @param {number} depth
 * @returns {Promise<boolean>}
 */
async function shows(manager, data, id, depth = 0) {
  const shown = data?.[VIEW]?.model_id;
  if (shown === id) return true;
  if (!shown || depth > DEEP || !manager.has_model?.(shown)) return false;
  return holds(manager, await manager.get_model(shown), id, depth + 1);
}

/**
 * @param {any} manager
 * @param {any} widget
 * @param {string} id
 * @param {number} depth
 * @returns {Promise<boolean>}
 */
async function holds(manager, widget, id, depth) {
  if (widget.model_id === id) return true;
  if (depth > DEEP) return false;
  for (const child of widget.get("children") ?? [])
    if (child?.get && (await holds(manager, child, id, depth + 1))) return true;
  for (const output of widget.get("outputs") ?? [])
    if (await shows(manager, output.data, id, depth + 1)) return true;
  return false;
}

/**
 * Indices of the code cells that show a widget.
 * @param {any} context
 * @param {any} manager
 * @param {string} id
 */
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

/**
 * Index of the cell in which this view stands, or -1. A widget may be shown by several cells, stand in
 * boxes, or be scrolled out of the page, so that no single sign is enough.
 * @param {Model} model
 * @param {HTMLElement | null} el
 * @param {{cellId?: string}} memo outlives the view
 */
export async function ownCell(model, el, memo = {}) {
  const context = notebook(model);
  const cells = cellsOf(context);
  const shown = await showing(context, model.widget_manager, model.get("_widget_id"));
  /** @param {string | undefined} id */
  const indexOf = (id) => (id ? cells.findIndex((cell) => cell.id === id) : -1);
  const host = /** @type {HTMLElement | null | undefined} */ (el?.closest?.(".jp-Notebook .jp-Cell"));
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

/**
 * The cell that holds this recipe, and the last of those that earlier recipes from the same place wrote.
 * @param {any} context
 * @param {{widget: string, recipe: number, origin: string}} from
 */
function writtenCells(context, from) {
  let own = null;
  let earlier = -1;
  for (const [index, cell] of cellsOf(context).entries()) {
    const mark = cell.sharedModel.getMetadata(NAME);
    if (!mark || mark.cell !== cell.id) continue; // a copy of the cell has another id: it is the person's
    const mine = mark.widget === from.widget;
    if (mine && (mark.recipe ?? 0) === from.recipe) own = { index, cell, mark };
    else if (mine || (from.origin && mark.origin === from.origin)) earlier = index;
  }
  return { own, earlier };
}

/**
 * Puts source into the next cell: updates the one that holds this recipe as long as the person has not
 * edited it, else inserts one. No other cell is touched. What an earlier recipe wrote stays, above the new
 * cell: after a run of it the model is no longer what it was, and its code says how it came to be.
 * @param {Model} model
 * @param {HTMLElement | null} el
 * @param {string} source
 * @param {{cellId?: string}} memo
 * @param {boolean} [empty] there is nothing to write: no cell is made for it, the one that there is is updated
 * @returns {Promise<{ok: boolean, why?: string, action?: string, index?: number}>}
 */
export async function emit(model, el, source, memo = {}, empty = false) {
  const context = notebook(model);
  if (!context) return { ok: false, why: "no-notebook" };
  if (context.model.readOnly) return { ok: false, why: "read-only" };
  const at = await ownCell(model, el, memo);
  const from = {
    widget: model.get("_widget_id"), recipe: model.get("_recipe") ?? 0, origin: memo.cellId ?? "",
  };
  const { own, earlier } = writtenCells(context, from);
  if (own && own.cell.sharedModel.getSource() === own.mark.source) {
    if (own.mark.source === source) return { ok: true, action: "unchanged", index: own.index };
    const shared = own.cell.sharedModel;
    shared.transact(() => { // of the cell, not of the notebook: undo inside the cell reverts both
      shared.setSource(source);
      shared.setMetadata(NAME, { ...from, cell: own.cell.id, source });
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

/**
 * Brings a cell into view and makes it the active one; best effort.
 * @param {number} index
 * @param {HTMLElement | null} el of the view, to tell its notebook from others that are open
 */
export async function reveal(index, el) {
  const book = el?.closest?.(".jp-Notebook") ?? document;
  for (let tries = 0; tries < 20; tries++) {
    const found = [...book.querySelectorAll(`.jp-Cell[data-windowed-list-index="${index}"]`)];
    const cell = /** @type {HTMLElement | undefined} */ (found.find((c) => c.getClientRects().length));
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

/** Whether the page is dark: JupyterLab says so itself, elsewhere the system does. */
export function isDark() {
  const light = document.body?.dataset.jpThemeLight;
  if (light !== undefined) return light === "false";
  const root = document.documentElement;
  if (document.body?.classList.contains("vscode-dark")) return true;
  if (document.body?.classList.contains("vscode-light")) return false;
  if (root.getAttribute("theme") === "dark" || root.dataset.theme === "dark") return true;
  return globalThis.matchMedia?.("(prefers-color-scheme: dark)").matches ?? false;
}

/**
 * Calls back when the page turns light or dark.
 * @param {() => void} changed
 * @param {AbortSignal} signal
 */
export function watchTheme(changed, signal) {
  const observer = new MutationObserver(changed);
  const options = { attributes: true, attributeFilter: ["data-jp-theme-light", "class", "theme"] };
  if (document.body) observer.observe(document.body, options);
  observer.observe(document.documentElement, options);
  signal.addEventListener("abort", () => observer.disconnect());
  globalThis.matchMedia?.("(prefers-color-scheme: dark)")
    .addEventListener?.("change", changed, { signal });
}

const ENDED = ["restarting", "autorestarting", "terminating", "dead"];

/**
 * Calls back when the kernel that made a widget is no longer there, and when it is heard of again. JupyterLab
 * goes on showing a widget after a restart and says so nowhere.
 * @param {Model} model
 * @param {(lost: boolean) => void} told
 * @param {AbortSignal} signal
 */
export function watchKernel(model, told, signal) {
  const manager = model.widget_manager;
  const session = manager?.context?.sessionContext;
  /** @param {any} _ @param {string} status */
  const onStatus = (_, status) => {
    if (ENDED.includes(status)) told(true);
  };
  /** @param {any} _ @param {any} change */
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
