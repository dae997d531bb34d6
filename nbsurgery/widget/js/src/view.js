// @ts-check
// One view of a widget: its parts, and who tells whom.

import { Code } from "./code.js";
import { button, h, icon } from "./dom.js";
import { Camera } from "./gestures.js";
import { help } from "./help.js";
import { isDark, watchKernel, watchTheme } from "./host.js";
import { listenToKeys } from "./keyboard.js";
import { legend } from "./legend.js";
import { Menu } from "./menu.js";
import { Minimap } from "./minimap.js";
import { Panel } from "./panel.js";
import { connect, GONE } from "./protocol.js";
import { Report } from "./report.js";
import { Painter } from "./scene.js";
import { Selection } from "./selection.js";
import { stateOf } from "./state.js";
import { Steps } from "./steps.js";
import { Toolbar } from "./toolbar.js";

/**
 * Builds a view into `el`.
 * @param {import("./types.js").Model} model
 * @param {HTMLElement} el
 * @returns {() => void} ends it: no listener and no timer stays
 */
export function open(model, el) {
  const controller = new AbortController();
  const { signal } = controller;
  const state = stateOf(model.get("_widget_id"));
  // the key shortcuts of JupyterLab stay away from what carries this mark
  const root = h("div", { class: "nbs-root", "data-lm-suppress-shortcuts": "true" });
  const canvas = h("div", {
    class: "nbs-canvas", tabindex: 0, role: "application",
    "aria-label": "Picture of the model. Arrow keys walk, Enter shows the operations, slash searches.",
  });
  const stage = h("div", { class: "nbs-stage" });
  const toast = h("div", { class: "nbs-toast", role: "status" });
  const banner = h("div", { class: "nbs-banner nbs-overlay", role: "alert", hidden: true });
  const tip = h("div", { class: "nbs-tip nbs-overlay" });

  let working = 0;
  let toasting = /** @type {any} */ (0);
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
    },
  });

  function announce() {
    banner.textContent = gone ? GONE : slow ? "The kernel is at work; this waits for it." : "";
    banner.hidden = banner.textContent === "";
    banner.dataset.kind = gone ? "error" : "info";
    root.classList.toggle("nbs-gone", gone);
  }

  /** @type {import("./types.js").View} */
  const view = {
    model, el, root, signal, state,
    ask: link.ask,
    say(text, kind = "info") {
      toast.textContent = text;
      toast.dataset.kind = kind;
      toast.classList.add("nbs-shown");
      clearTimeout(toasting);
      toasting = setTimeout(() => toast.classList.remove("nbs-shown"), kind === "error" ? 9000 : 4500);
    },
    fail(error) {
      const { type, message } = /** @type {any} */ (error);
      if (signal.aborted || type === "KernelGone") return; // the banner says it, and stays
      view.say(String(message), "error");
    },
    busy(on) {
      working += on ? 1 : -1;
      toolbar.busy(working > 0);
    },
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
    zoom: (by) => camera.zoom(by || 1 / camera.at.k, undefined, true),
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
    },
  });
  const selection = new Selection(view, painter, canvas, camera, { toggle, tip });
  const menu = new Menu(view, { pick, mark: (names) => markAll("nbs-touched", names), done: () => {} });
  const panel = new Panel(view, { menu: menu.el, go, legend: () => legend(painter), offers: (offers, names) => menu.show(offers, names) });
  const steps = new Steps(view, {
    edit: (form, number) => menu.open({ ...form, label: `Step ${number}: ${form.label}` }),
  });
  const code = new Code(view);
  const report = new Report(view);

  const notice = h("div", { class: "nbs-notice", role: "status", hidden: true });
  let dismissed = "";

  function note() {
    const { kind, text } = model.get("_notice") ?? {};
    notice.hidden = !text || text === dismissed;
    if (notice.hidden) return;
    notice.dataset.kind = kind;
    const choice = kind !== "changed" ? [] : [
      button({ label: "Go on from it", title: "Start again with the edited model, without steps", class: "nbs-rebase", click: () => request("rebase", {}), signal }),
      button({ label: "Keep the recipe", class: "nbs-keep", click: () => {
        dismissed = text;
        note();
      }, signal }),
    ];
    notice.replaceChildren(icon(kind === "failed" ? "warn" : "info"), h("span", {}, text), ...choice);
  }

  root.append(
    h("div", { class: "nbs-top-bars" }, toolbar.el, notice),
    h("div", { class: "nbs-main" }, canvas, h("aside", { class: "nbs-panel" }, panel.el, steps.el)),
    h("div", { class: "nbs-bottom" }, code.el, report.el, toast));
  el.append(root);

  listenToKeys(view, canvas, {
    painter, selection, camera, toggle,
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
    redo: () => steps.redo(),
  });

  // ---- the picture

  /** @type {{scope: string, x: number, y: number} | null} where on the screen the thing toggled stood */
  let anchor = null;
  let painted = /** @type {any} */ (null);

  function paint() {
    const scene = model.get("_scene");
    if (!scene?.group) return;
    painter.draw(scene);
    camera.resize(scene);
    painted = scene;
    minimap.draw(painter);
    const item = anchor ? painter.find(anchor.scope) : undefined;
    if (anchor && item) camera.hold(item, anchor);
    else camera.recover();
    anchor = null;
    selection.mark();
  }

  /** @param {string} scope */
  function hold(scope) {
    const item = painter.find(scope);
    if (!item) return;
    const { x, y, k } = camera.at;
    anchor = { scope, x: item.x * k + x, y: item.y * k + y };
  }

  /** @param {string} scope @param {boolean} [recursive] */
  function toggle(scope, recursive = false) {
    hold(scope);
    request("toggle", { scope, recursive });
  }

  /** @param {number} by */
  function changeDepth(by) {
    let open = 0;
    for (const item of painter.order) if (item.kind === "group") open = Math.max(open, item.data.depth);
    request("expand_to", { depth: Math.max(0, open + by) });
  }

  /** @param {string} method @param {any} params */
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

  /** Selects a name and brings it into sight; Python opens what hides it. @param {string} name */
  let wanted = /** @type {string | null} */ (null);
  /** @param {string} name */
  function go(name) {
    wanted = name;
    selection.set([name]);
    look();
  }

  function look() {
    if (wanted === null) return;
    const item = painter.find(wanted);
    if (!item) return; // the next picture will have it
    wanted = null;
    camera.show(item.kind === "group" ? { ...item, h: Math.min(item.h, item.data.head + 120) } : item);
  }

  /** @param {string} mark a class @param {string[]} names */
  function markAll(mark, names) {
    for (const old of painter.svg.querySelectorAll(`.${mark}`)) old.classList.remove(mark);
    for (const name of names)
      for (const item of painter.names.get(name) ?? []) item.el.classList.add(mark);
  }

  // ---- a click that answers a form

  /** @param {(name: string) => void} done */
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

  // ---- what Python changes

  /** @type {[string, () => void][]} */
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
    ["change:code", () => code.draw()],
    ["change:_style", () => code.drawStyle()],
    ["change:report", () => {
      report.draw();
      code.drawFate();
    }],
    ["change:_checking", () => {
      report.draw();
      code.drawFate();
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
    ["change:_notice", note],
  ];
  for (const [name, handler] of watched) model.on(name, handler);

  function fold() {
    const edited = (model.get("steps") ?? []).length > 0;
    root.classList.toggle("nbs-unedited", !edited);
    toolbar.look(edited, model.get("_views") ?? ["before", "after"], model.get("_view") ?? "after");
  }

  function dress() {
    const theme = model.get("theme");
    root.classList.toggle("nbs-dark", theme === "dark" || (theme !== "light" && isDark()));
  }

  dress();
  watchTheme(dress, signal);
  watchKernel(model, link.lose, signal);
  fold();
  note();
  paint();
  // a view has no size before the host has put it into the page, and none while its tab is hidden
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
    if (placed && by && wide && canvas.clientWidth) camera.go({ ...camera.at, x: camera.at.x + by / 2 }); // the middle stays
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

