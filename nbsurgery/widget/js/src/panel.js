// @ts-check
// The side panel: what is known of the selection, as Python tells it, with links to its neighbours.

import { button, h } from "./dom.js";

export class Panel {
  /**
   * @param {import("./types.js").View} view
   * @param {{menu: HTMLElement, legend: () => HTMLElement, go: (name: string) => void, offers: (offers: any[], names: string[]) => void}} parts
   */
  constructor(view, parts) {
    this.view = view;
    this.parts = parts;
    this.head = h("header", { class: "nbs-head-line", "aria-live": "polite" });
    this.facts = h("section", { class: "nbs-facts" });
    this.hint = h("p", { class: "nbs-hint", hidden: true });
    this.el = h("div", { class: "nbs-panel-body" }, this.head, this.hint, parts.menu, this.facts);
    this.asked = 0;
    this.key = "";
    this.timer = /** @type {any} */ (0);
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
      clearTimeout(late); // what can be done may have to wait for a cell at work; what is known need not
      this.facts.classList.remove("nbs-stale");
      const past = this.view.model.get("_view") === "before";
      this.hint.textContent = !names.length ? "Click a layer to see what can be done with it."
        : past ? "This is the model as it was. Switch to After to edit." : "";
      this.hint.hidden = !this.hint.textContent;
      let offers = /** @type {import("./types.js").Offer[]} */ ([]);
      do { // an answer comes soon, with what could be tried until then
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
      if (/** @type {any} */ (error).type === "KernelGone") return; // the banner says it, the facts stay
      const title = names.length === 1 ? names[0] : `${names.length} selected`;
      this.head.replaceChildren(h("h3", {}, names.length ? title : "Model"));
      this.facts.replaceChildren(
        h("p", { class: "nbs-problem" }, String(/** @type {Error} */ (error).message)));
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
    const rows = (facts.rows ?? []).flatMap((/** @type {any} */ row) => {
      const links = (row.links ?? []).map((/** @type {any} */ link) =>
        button({ label: link.text, class: "nbs-link", click: () => this.parts.go(link.name), signal }));
      const many = links.length > 8 ? h("details", {}, h("summary", {}, `${links.length} names`), ...links) : null;
      return [
        h("dt", {}, row.label),
        h("dd", {}, row.value ? h("span", {}, row.value) : null, ...(many ? [many] : links)),
      ];
    });
    const source = facts.source
      ? h("div", { class: "nbs-source" },
          h("span", { class: "nbs-place" }, facts.source.place),
          h("code", {}, facts.source.line))
      : null;
    this.head.replaceChildren(h("h3", { title: facts.title }, facts.title),
      h("span", { class: "nbs-kind" }, facts.subtitle ?? facts.type ?? ""));
    this.facts.replaceChildren(
      h("dl", {}, ...rows), source ?? "",
      facts.text ? h("p", { class: "nbs-explain" }, facts.text) : "",
      facts.names?.[0] === "" ? this.parts.legend() : "");
  }
}
