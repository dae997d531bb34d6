// @ts-check
// Builds elements. Text goes in as text: names and source of a model are data, whatever they contain.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. `props` are attributes; `on` holds listeners, which end with `signal`.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {any}
 */
export function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  const { on, signal, ...attributes } = props;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    el.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, handler] of Object.entries(on ?? {}))
    el.addEventListener(name, handler, signal ? { signal } : undefined);
  for (const child of children)
    if (child !== null && child !== undefined && child !== false) el.append(child);
  return el;
}

/**
 * An SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function s(tag, attributes = {}, ...children) {
  const el = document.createElementNS(SVG, tag);
  set(el, attributes);
  el.append(...children);
  return el;
}

/**
 * Sets attributes that differ, so that nothing is invalidated in vain.
 * @param {Element} el
 * @param {Record<string, any>} attributes
 */
export function set(el, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) el.removeAttribute(name);
    else if (el.getAttribute(name) !== String(value)) el.setAttribute(name, String(value));
  }
}

/**
 * @param {Element} el
 * @param {string} text
 */
export function text(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

/** Strokes on a 16 by 16 field. */
const ICONS = {
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
  help: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6.2 6.3a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.8.6-.8 1.2M8 11.3v.2",
};

/**
 * @param {keyof typeof ICONS} name
 * @returns {SVGElement}
 */
export function icon(name) {
  return s("svg", { class: "nbs-icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    s("path", { d: ICONS[name] }));
}

/**
 * A button with an icon, a label, or both.
 * @param {{icon?: keyof typeof ICONS, label?: string, title?: string, class?: string,
 *   click: (event: MouseEvent) => void, signal?: AbortSignal, disabled?: boolean}} options
 * @returns {HTMLButtonElement}
 */
export function button(options) {
  return h("button", {
    type: "button",
    class: `nbs-button ${options.class ?? ""}`.trim(),
    title: options.title ?? null,
    "aria-label": options.label ? null : options.title,
    disabled: options.disabled ?? false,
    on: { click: options.click },
    signal: options.signal,
  }, options.icon ? icon(options.icon) : null, options.label ? h("span", {}, options.label) : null);
}
