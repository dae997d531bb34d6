// @ts-check
// The operations that fit the selection, and the form of the one chosen, with its count before it is applied.

import { button, h, icon } from "./dom.js";
import { form } from "./forms.js";

const PAUSE = 250; // ms of quiet before a preview is asked for

/** What stays the same of an offer while it is being tried. @param {import("./types.js").Offer} offer */
const keyOf = (offer) => `${offer.operation}\n${offer.label}`;

export class Menu {
  /**
   * @param {import("./types.js").View} view
   * @param {{pick: (done: (name: string) => void) => void, mark: (names: string[]) => void,
   *   done: () => void}} parts
   */
  constructor(view, parts) {
    this.view = view;
    this.parts = parts;
    this.el = h("section", { class: "nbs-menu", "aria-label": "Operations" });
    /** @type {import("./types.js").Offer[]} */
    this.offers = [];
    /** @type {Map<string, HTMLButtonElement>} */
    this.buttons = new Map();
    /** @type {AbortController | null} */
    this.form = null;
    /** @type {string[]} */
    this.names = [];
    this.wanted = false; // the keyboard asked for operations that are not here yet
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
    if (more) this.#update(); // no button moves away from under a press
    else if (!(this.isOpen && same)) this.close(); // what a person has begun to fill in stays
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
    this.#list(this.view.root.dataset.asking !== undefined);
  }

  focus() {
    const first = /** @type {HTMLElement | null} */ (this.el.querySelector("button:not(:disabled)"));
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
    /** @type {Map<string, import("./types.js").Offer[]>} */
    const groups = new Map();
    for (const offer of this.offers) {
      const name = offer.group || "Edit";
      groups.set(name, [...(groups.get(name) ?? []), offer]);
    }
    this.buttons = new Map(this.offers.map((offer) => [keyOf(offer), this.#button(offer)]));
    this.el.replaceChildren(...[...groups].map(([name, offers]) =>
      h("div", { class: "nbs-offers" },
        h("h4", {}, name),
        h("div", { class: "nbs-buttons" }, ...offers.map((offer) => this.buttons.get(keyOf(offer)))))));
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
    const [label, meaning] = offer.label.split(": "); // the form has room for both
    const made = button({
      label,
      title: [meaning, offer.note].filter(Boolean).join("; ") || undefined,
      class: "nbs-offer",
      click: () => this.open(this.offers.find((one) => keyOf(one) === key) ?? offer),
      signal: this.view.signal,
      disabled: offer.pending,
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
    let timer = /** @type {any} */ (0);
    signal.addEventListener("abort", () => clearTimeout(timer));

    const step = offer.uid === undefined ? {} : { uid: offer.uid };
    const values = () => ({
      ...(offer.arguments ?? { where: this.names }),
      ...fields.read(offer.uid !== undefined),
    });
    /** @param {string} message */
    const fail = (message) => {
      problem.replaceChildren(icon("warn"), h("span", {}, message));
      problem.hidden = message === "";
    };
    /** @param {boolean} [first] the form as it opens is nobody's mistake: what is missing is no problem yet */
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
        const { message } = /** @type {Error} */ (error);
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
        if (offer.uid === undefined) await this.view.ask("apply", { operation: offer.operation, arguments: values() });
        else await this.view.ask("change_step", { ...step, arguments: values() });
        if (!signal.aborted) this.close();
        this.parts.done();
      } catch (error) {
        if (!signal.aborted) {
          preview.textContent = "";
          fail(String(/** @type {Error} */ (error).message));
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
      pick: this.parts.pick,
    });
    const back = button({ icon: "back", title: "Back to the operations", click: () => this.close(), signal });
    const apply = button({ label: offer.uid === undefined ? "Apply" : "Change", class: "nbs-primary nbs-apply", click: go, signal });
    const cancel = button({ label: "Cancel", click: () => this.close(), signal });
    this.el.replaceChildren(h("form", {
      class: "nbs-form",
      on: {
        submit: (/** @type {Event} */ event) => event.preventDefault(),
        keydown: (/** @type {KeyboardEvent} */ event) => {
          const field = /** @type {Element} */ (event.target).tagName;
          const send = field === "INPUT" || (field === "TEXTAREA" && !event.shiftKey);
          if (event.key !== "Enter" || !send || apply.disabled) return;
          event.preventDefault();
          go();
        },
      },
      signal,
    },
    h("header", {}, back, h("h4", {}, offer.label)),
    offer.note ? h("p", { class: "nbs-note" }, offer.note) : null,
    fields.el, preview, problem, h("footer", {}, cancel, apply)));
    this.el.hidden = false;
    if (!fields.focus()) apply.focus({ preventScroll: true });
    if (this.el.parentElement) this.el.parentElement.scrollTop = 0;
    look(true);
  }
}
