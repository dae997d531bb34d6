// @ts-check
// A small map of a large picture at the canvas's edge: where one is, and a way to go elsewhere.

import { s, set } from "./dom.js";

const WIDE = 84;
const HIGH = 0.62; // of the canvas, at most

export class Minimap {
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
    /** @param {PointerEvent} event */
    const move = (event) => {
      const box = this.el.getBoundingClientRect();
      const { k } = camera.at;
      const x = (event.clientX - box.left) / this.scale;
      const y = (event.clientY - box.top) / this.scale;
      camera.go({ k, x: canvas.clientWidth / 2 - x * k, y: canvas.clientHeight / 2 - y * k }, !held);
    };
    this.el.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      event.stopPropagation();
      this.el.setPointerCapture?.(event.pointerId);
      move(event);
      held = true;
    }, { signal });
    this.el.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (held) move(event);
    }, { signal });
    for (const name of ["pointerup", "pointercancel"])
      this.el.addEventListener(name, () => {
        held = false;
      }, { signal });
    this.el.addEventListener("click", (/** @type {Event} */ event) => event.stopPropagation(), { signal });
  }

  /**
   * Draws what there is: modules as frames, operations as strips of their colour.
   * @param {import("./scene.js").Painter} painter
   */
  draw(painter) {
    const { w, h } = this.camera.size;
    const room = this.canvas.clientHeight;
    if (!w || !room) return;
    this.scale = Math.min(WIDE / w, (room * HIGH) / h);
    const k = this.scale;
    set(this.el, { width: w * k, height: h * k });
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
    const { w, h } = this.camera.size;
    const wide = this.canvas.clientWidth;
    const high = this.canvas.clientHeight;
    const whole = w * k <= wide * 1.05 && h * k <= high * 1.05;
    this.el.classList.toggle("nbs-hidden", whole || !wide);
    const at = this.scale;
    const left = Math.max(0, (-x / k) * at);
    const top = Math.max(0, (-y / k) * at);
    const right = Math.min(w * at, ((wide - x) / k) * at);
    const bottom = Math.min(h * at, ((high - y) / k) * at);
    set(this.frame, {
      x: left + 0.5, y: top + 0.5, width: Math.max(2, right - left - 1), height: Math.max(2, bottom - top - 1),
    });
  }
}
