// @ts-check
// A form drawn from the fields that Python sends: values in, values out, no knowledge of any operation.

import { button, h } from "./dom.js";

/**
 * @typedef {import("./types.js").Field} Field
 * @typedef {{el: HTMLElement, read: () => any}} Control
 */

let forms = 0;

/**
 * @param {Field[]} fields
 * @param {{changed: () => void, signal: AbortSignal, find: (query: string) => Promise<string[]>,
 *   pick: (done: (name: string) => void) => void}} options
 */
export function form(fields, options) {
  const tag = `nbs-form-${++forms}`;
  /** @type {Map<string, Control>} */
  const controls = new Map();
  const rows = fields.map((field, i) => {
    const id = `${tag}-${i}`;
    const control = (MAKERS[field.type] ?? text)(field, id, options);
    controls.set(field.name, control);
    const label = h("label", { for: id, class: "nbs-label" }, field.label ?? field.name);
    const help = field.help ? h("div", { class: "nbs-help", id: `${id}-help` }, field.help) : null;
    if (field.type === "bool")
      return h("div", { class: "nbs-field nbs-field-bool" }, h("div", { class: "nbs-check" }, control.el, label), help);
    return h("div", { class: `nbs-field nbs-field-${field.type}` }, label, control.el, help);
  });
  return {
    el: h("div", { class: "nbs-fields" }, ...rows),
    /**
     * @param {boolean} [nulls] what was left empty is null; else it is left out
     * @returns {Record<string, any>}
     */
    read(nulls = false) {
      /** @type {Record<string, any>} */
      const values = {};
      for (const [name, control] of controls) {
        const value = control.read();
        if (nulls || (value !== null && value !== undefined)) values[name] = value ?? null;
      }
      return values;
    },
    focus() {
      const first = /** @type {HTMLElement | null} */ (
        rows[0]?.querySelector("input, textarea, select"));
      first?.focus({ preventScroll: true });
      if (first instanceof HTMLInputElement && first.type === "text") first.select();
      return Boolean(first);
    },
  };
}

/** @typedef {Parameters<typeof form>[1]} Options */

/** @param {Field} field @param {string} id @param {Options} options @returns {Control} */
function text(field, id, options) {
  const el = h("input", {
    id, type: "text", class: "nbs-input", spellcheck: "false", autocomplete: "off",
    on: { input: options.changed }, signal: options.signal,
  });
  el.value = field.default ?? "";
  return { el, read: () => (el.value.trim() === "" ? null : el.value.trim()) };
}

/** @param {Field} field @param {string} id @param {Options} options @returns {Control} */
function code(field, id, options) {
  const el = h("textarea", {
    id, class: "nbs-input nbs-mono", rows: 1, spellcheck: "false", autocapitalize: "off",
    on: {
      input: () => {
        grow();
        options.changed();
      },
    },
    signal: options.signal,
  });
  const grow = () => {
    el.rows = Math.min(6, Math.max(1, el.value.split("\n").length, Math.ceil(el.value.length / 38)));
  };
  el.value = field.default ?? "";
  grow();
  if (!field.choices?.length) return { el, read: () => (el.value.trim() === "" ? null : el.value.trim()) };
  const quick = field.choices.map((choice) => {
    const { value, label } = option(choice);
    const click = () => {
      el.value = String(value);
      grow();
      options.changed();
      el.focus();
    };
    return button({ label, class: "nbs-quick", click, signal: options.signal });
  });
  const box = h("div", { class: "nbs-stack" }, el, h("div", { class: "nbs-quicks" }, ...quick));
  return { el: box, read: () => (el.value.trim() === "" ? null : el.value.trim()) };
}

/** @param {Field} field @param {string} id @param {Options} options @returns {Control} */
function int(field, id, options) {
  const el = h("input", {
    id, type: "number", step: 1, class: "nbs-input nbs-number",
    on: { input: options.changed }, signal: options.signal,
  });
  if (field.default !== null && field.default !== undefined) el.value = String(field.default);
  return { el, read: () => (el.value === "" ? null : Number(el.value)) };
}

/** @param {any} choice */
const option = (choice) =>
  choice !== null && typeof choice === "object"
    ? { value: choice.value, label: String(choice.label ?? choice.value) }
    : { value: choice, label: String(choice) };

/** @param {Field} field @param {string} id @param {Options} options @returns {Control} */
function choice(field, id, options) {
  const choices = (field.choices ?? []).map(option);
  const el = h("select", {
    id, class: "nbs-input", on: { change: options.changed }, signal: options.signal,
  }, ...choices.map(({ label }, i) => h("option", { value: i }, label)));
  const at = choices.findIndex(({ value }) => value === field.default);
  el.value = String(Math.max(0, at));
  return { el, read: () => choices[Number(el.value)]?.value ?? null };
}

/** @param {Field} field @param {string} id @param {Options} options @returns {Control} */
function bool(field, id, options) {
  const el = h("input", {
    id, type: "checkbox", on: { change: options.changed }, signal: options.signal,
  });
  el.checked = Boolean(field.default);
  return { el, read: () => el.checked };
}

/** A place of the model: typed with completion, or clicked. @param {Field} field @param {string} id @param {Options} options @returns {Control} */
function node(field, id, options) {
  const list = h("datalist", { id: `${id}-names` });
  const el = h("input", {
    id, type: "text", class: "nbs-input nbs-mono", list: `${id}-names`, spellcheck: "false",
    on: {
      input: async () => {
        options.changed();
        const names = await options.find(el.value).catch(() => []);
        list.replaceChildren(...names.slice(0, 30).map((name) => h("option", { value: name })));
      },
    },
    signal: options.signal,
  });
  el.value = field.default ?? "";
  const pick = button({
    icon: "target",
    title: "Click it in the picture",
    click: () =>
      options.pick((name) => {
        el.value = name;
        options.changed();
      }),
    signal: options.signal,
  });
  return {
    el: h("div", { class: "nbs-pair" }, el, list, pick),
    read: () => (el.value.trim() === "" ? null : el.value.trim()),
  };
}

/** @type {Record<string, (field: Field, id: string, options: Options) => Control>} */
const MAKERS = { text, code, int, choice, bool, node };
