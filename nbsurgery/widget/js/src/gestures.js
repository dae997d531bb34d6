// @ts-check
// Pan, zoom and fit of the picture, by a CSS transform on its stage.

const LEAST = 0.05;
const MOST = 4;
const MARGIN = 24;

export class Camera {
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
    const { w, h } = this.#room();
    const keep = 60;
    const k = Math.min(MOST, Math.max(LEAST, to.k));
    if (!w || !this.size.w) return { ...to, k };
    return {
      k,
      x: Math.min(w - keep, Math.max(keep - this.size.w * k, to.x)),
      y: Math.min(h - keep, Math.max(keep - this.size.h * k, to.y)),
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
    const { w, h } = this.#room();
    if (!w) return;
    const k = Math.max(0.45, Math.min(1, (w - 2 * MARGIN) / this.size.w));
    const x = this.size.w * k < w ? (w - this.size.w * k) / 2 : MARGIN;
    const y = this.size.h * k < h ? (h - this.size.h * k) / 2 : 10;
    this.go({ x, y, k });
  }

  /** When the picture has shrunk away from under the view: back to what there is, as little as needed. */
  recover() {
    if (!this.state.pan) return;
    const { w, h } = this.#room();
    const { x, y, k } = this.state.pan;
    if (!w || !this.size.w) return;
    /** @param {number} at @param {number} size @param {number} space */
    const back = (at, size, space) => {
      const seen = Math.min(at + size, space) - Math.max(at, 0);
      if (seen >= Math.min(size, space) * 0.3) return at;
      if (size <= space - 2 * MARGIN) return (space - size) / 2;
      return at < 0 ? space - MARGIN - size : MARGIN;
    };
    const to = { x: back(x, this.size.w * k, w), y: back(y, this.size.h * k, h), k };
    if (to.x !== x || to.y !== y) this.go(to, true);
  }

  /** All of it at once. */
  fit() {
    const { w, h } = this.#room();
    const k = Math.min((w - 2 * MARGIN) / this.size.w, (h - 2 * MARGIN) / this.size.h, 1.4);
    this.go({ k, x: (w - this.size.w * k) / 2, y: (h - this.size.h * k) / 2 }, true);
  }

  /**
   * @param {number} factor
   * @param {{x: number, y: number}} [about] a point of the canvas that stays; its middle by default
   * @param {boolean} [smooth]
   */
  zoom(factor, about, smooth = false) {
    const { w, h } = this.#room();
    const point = about ?? { x: w / 2, y: h / 2 };
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
    /**
     * @param {number} start @param {number} size @param {number} offset @param {number} space
     */
    const shift = (start, size, offset, space) => {
      const low = start * k + offset;
      const high = (start + size) * k + offset;
      const edge = Math.min(56, space / 6);
      if (moved || high - low > space - 2 * edge) {
        if (!moved && low < space - edge && high > edge + 40) return offset; // a part is in sight
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
    /** @type {{id: number, x: number, y: number, from: {x: number, y: number, k: number}} | null} */
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      this.dragged = false;
      if (event.button > 1) return;
      const target = /** @type {Element} */ (event.target);
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
      this.zoom(Math.exp(-step * 0.006), this.#point(event));
      return;
    }
    if (!this.canvas.contains(document.activeElement)) return;
    const sideways = event.shiftKey && !event.deltaX;
    const dx = (sideways ? event.deltaY : event.deltaX) * unit;
    const dy = sideways ? 0 : event.deltaY * unit;
    const { x, y, k } = this.at;
    const { w, h } = this.#room();
    /** @param {number} by @param {number} at @param {number} size @param {number} space */
    const more = (by, at, size, space) =>
      by > 0 ? at + size * k > space - MARGIN : by < 0 ? at < MARGIN : false;
    const moveX = more(dx, x, this.size.w, w) ? dx : 0;
    const moveY = more(dy, y, this.size.h, h) ? dy : 0;
    if (!moveX && !moveY) return;
    event.preventDefault();
    this.go({ k, x: x - moveX, y: y - moveY });
  }
}
