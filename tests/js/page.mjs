// A page, a notebook and a kernel made up for the tests of the front end.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(fileURLToPath(new URL("../../nbsurgery/widget/js/package.json", import.meta.url)));
const { JSDOM } = require("jsdom");

export const SOURCE = new URL("../../nbsurgery/widget/js/src/", import.meta.url);

/** Makes a fresh page and puts its names where the modules look for them. */
export function page(html = "<body></body>") {
  const dom = new JSDOM(html, { pretendToBeVisual: true });
  for (const name of ["window", "document", "MouseEvent", "KeyboardEvent", "Event", "MutationObserver", "HTMLInputElement", "AbortController"])
    Object.defineProperty(globalThis, name, { value: dom.window[name], configurable: true, writable: true });
  globalThis.WheelEvent = dom.window.WheelEvent;
  return dom;
}

/** A cell as the host's model shows it. */
export function cell(options = {}) {
  const state = { source: options.source ?? "", metadata: options.metadata ?? {}, outputs: options.outputs ?? [] };
  return {
    id: options.id ?? Math.random().toString(36).slice(2),
    type: options.type ?? "code",
    sharedModel: {
      getSource: () => state.source,
      setSource: (source) => { state.source = source; },
      getMetadata: (key) => state.metadata[key],
      setMetadata: (key, value) => { state.metadata[key] = value; },
      getOutputs: () => state.outputs,
      transact: (change) => change(),
    },
    state,
  };
}

/** The output of a cell that shows a widget. */
export const shown = (id) => ({ data: { "application/vnd.jupyter.widget-view+json": { model_id: id } } });

/** A widget manager with an open notebook. */
export function host(cells, widgets = {}) {
  const list = cells.map((options) => cell(options));
  return {
    list,
    sources: () => list.map((c) => c.sharedModel.getSource()),
    has_model: (id) => id in widgets,
    get_model: async (id) => widgets[id],
    context: {
      model: {
        readOnly: false,
        cells: { get length() { return list.length; }, get: (i) => list[i] },
        sharedModel: {
          transact: (change) => change(),
          insertCell: (i, options) => list.splice(i, 0, cell({ ...options })),
        },
      },
    },
  };
}

/** A widget model, with the kernel's answers by method. */
export function widget(state, manager, answers = {}) {
  const handlers = new Map();
  const on = (name, handler) => handlers.set(name, [...(handlers.get(name) ?? []), handler]);
  const emit = (name, ...args) => { for (const handler of handlers.get(name) ?? []) handler(...args); };
  const model = {
    sent: [],
    saved: 0,
    handlers,
    emit,
    get: (name) => state[name],
    set: (name, value) => {
      state[name] = value;
      emit(`change:${name}`);
    },
    save_changes: () => { model.saved++; },
    on,
    off: (name, handler) => handlers.set(name, (handlers.get(name) ?? []).filter((h) => h !== handler)),
    send: (message) => {
      model.sent.push(message);
      const reply = answers[message.method];
      if (reply === undefined) return;
      queueMicrotask(() => {
        try {
          emit("msg:custom", { id: message.id, ok: true, result: typeof reply === "function" ? reply(message.params) : reply });
        } catch (error) {
          emit("msg:custom", { id: message.id, ok: false, error: { type: error.name, message: error.message } });
        }
      });
    },
    widget_manager: manager,
  };
  return model;
}

export const soon = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

/** A small scene: an input, a card of two rows, a closed module, a skip. */
export function scene(open = false) {
  const row = (name, y) => ({
    key: `n:#${name}`, node: name, name, type: "Conv2d", family: "conv", shape: "8×4×4", params: "1,024",
    y, h: 26, tip: name, badge: null, diff: null,
  });
  const block = open
    ? { key: "s:block", kind: "group", scope: "block", name: "block", type: "Block", params: "2K", shape: "", depth: 1, x: 10, y: 120, w: 200, h: 120, head: 24, badge: null, diff: null, items: [{ key: "c:block#1", kind: "card", x: 10, y: 40, w: 180, h: 26, column: 20, rows: [row("block.conv", 0)] }], edges: [] }
    : { key: "b:block", kind: "box", scopes: ["block", "block2"], scope: "block", name: "block", type: "Block", count: 2, shape: "8×4×4", params: "2K", x: 10, y: 120, w: 160, h: 50, badge: { count: 1, text: "cannot be rewritten" }, diff: null };
  return {
    width: 240, height: 300, stats: {},
    group: {
      key: "s:", kind: "group", scope: "", name: "", type: "Net", params: "", shape: "", depth: 0, x: 0, y: 0, w: 240, h: 300, head: 0, badge: null, diff: null,
      items: [
        { key: "n:#x", kind: "pill", node: "x", name: "x", shape: "3×4×4", x: 60, y: 10, w: 90, h: 26 },
        { key: "c:#a", kind: "card", x: 10, y: 50, w: 180, h: 52, column: 20, rows: [row("a", 0), row("b", 26)] },
        block,
      ],
      edges: [
        { key: "e1", value: "#x", d: "M100,36V49", skip: false, arrow: true, shape: "3×4×4", from: "n:#x", to: "c:#a" },
        { key: "e2", value: "#b", d: "M100,102V119", skip: false, arrow: true, shape: "8×4×4", from: "c:#a", to: "b:block" },
        { key: "e3", value: "#x", d: "M100,36C20,60 20,100 100,119", skip: true, arrow: true, shape: "3×4×4", from: "n:#x", to: "b:block" },
      ],
    },
  };
}
