// @ts-check
// What was checked on the edited copy: findings by weight, facts before and after.

import { button, h, icon } from "./dom.js";

/** @type {Record<string, "check" | "info" | "warn" | "cross">} */
const SIGNS = { ok: "check", info: "info", warning: "warn", error: "cross" };
const WEIGHT = ["error", "warning", "info", "ok"];

/**
 * What is being checked, in words.
 * @param {import("./types.js").Checking} checking
 */
export function progress({ name, number, of, holds }) {
  return `checking ${name}, ${number} of ${of}${holds ? "; it holds the kernel for some seconds" : ""}`;
}

/**
 * A report in two words.
 * @param {import("./types.js").Report} report
 */
export function verdict(report) {
  for (const [severity, word] of [["error", "problem"], ["warning", "warning"]]) {
    const count = (report.findings ?? []).filter((f) => f.severity === severity).length;
    if (count) return `${count} ${word}${count > 1 ? "s" : ""}`;
  }
  return "all well";
}

export class Report {
  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
    this.stopping = false;
    this.verifyButton = button({
      icon: "shield", label: "Verify", class: "nbs-verify", click: () => this.verify(), signal: view.signal,
    });
    this.mood = h("span", { class: "nbs-mood" });
    this.bar = h("progress", { class: "nbs-progress", "aria-label": "Checks done", hidden: true });
    this.body = h("div", { class: "nbs-report-body" });
    this.el = h("section", { class: "nbs-report", "aria-label": "Report" },
      h("header", {}, h("h4", {}, "Report"), this.mood, h("span", { class: "nbs-space" }), this.verifyButton),
      this.bar, this.body);
    this.draw();
  }

  /** Begins the full check, or ends the one at work. */
  async verify() {
    const running = this.checking.state === "running";
    this.stopping = running; // the check at work is finished first: until then the button says so
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
    /** @type {import("./types.js").Report} */
    const report = this.view.model.get("report") ?? {};
    const edited = (this.view.model.get("steps") ?? []).length > 0;
    const findings = [...(report.findings ?? [])];
    findings.sort((a, b) => WEIGHT.indexOf(a.severity) - WEIGHT.indexOf(b.severity));
    const count = (/** @type {string} */ severity) => findings.filter((f) => f.severity === severity).length;
    const bad = count("error");
    const warned = count("warning");
    const { checking } = this;
    const running = checking.state === "running";
    if (!running) this.stopping = false;
    this.mood.className = `nbs-mood nbs-mood-${running ? "info" : bad ? "error" : warned ? "warning" : "ok"}`;
    this.mood.textContent = running ? progress(checking) : !edited || !findings.length ? ""
      : verdict(report) + (checking.state === "stopped" ? ", the full check was stopped" : "");
    this.bar.hidden = !running;
    this.bar.value = (checking.number ?? 1) - 1;
    this.bar.max = checking.of ?? 1;
    this.verifyButton.disabled = !edited || this.stopping;
    this.verifyButton.querySelector("span")?.replaceChildren(this.stopping ? "Stopping …" : running ? "Stop" : "Verify");
    this.verifyButton.title = running ? "Check no further" : "Check in full: other sizes, training, pickling, …";
    const facts = report.facts ?? [];
    const table = facts.length
      ? h("table", {}, h("thead", {}, h("tr", {}, h("th", {}), h("th", {}, "Before"), h("th", {}, "After"))),
          h("tbody", {}, ...facts.map((fact) => {
            const same = String(fact.before) === String(fact.after);
            return h("tr", { class: same ? "nbs-same" : null }, h("th", {}, fact.label),
              h("td", {}, String(fact.before ?? "")), h("td", {}, String(fact.after ?? "")));
          })))
      : "";
    const grave = (/** @type {import("./types.js").Finding} */ f) => ["error", "warning"].includes(f.severity);
    this.body.replaceChildren(
      this.#list(findings.filter(grave)), table, this.#list(findings.filter((f) => !grave(f))));
    if (checking.state === "failed")
      this.body.prepend(this.#list([{ severity: "error", text: `The full check could not be finished: ${checking.text}` }]));
    if (!findings.length && !facts.length)
      this.body.append(h("p", { class: "nbs-muted" }, "What an edit changes is checked here before you emit it."));
  }

  /** @param {import("./types.js").Finding[]} findings */
  #list(findings) {
    if (!findings.length) return "";
    return h("ul", {}, ...findings.map((finding) =>
      h("li", { class: `nbs-finding nbs-${finding.severity}` }, icon(SIGNS[finding.severity] ?? "info"),
        h("span", {}, finding.text), this.#cure(finding) ?? "")));
  }

  /** @param {import("./types.js").Finding} finding */
  #cure(finding) {
    const cure = finding.cure;
    if (!cure?.operation) return null;
    return button({
      label: cure.label ?? "Cure", class: "nbs-quick", signal: this.view.signal,
      click: async () => {
        this.view.busy(true);
        try {
          await this.view.ask("apply", { operation: cure.operation, arguments: cure.arguments ?? {} });
        } catch (error) {
          this.view.fail(error);
        } finally {
          this.view.busy(false);
        }
      },
    });
  }
}
