// @ts-check
// What outlives a view: JupyterLab makes views anew when a cell is moved, and shows one widget several times.

/**
 * @typedef {{
 *   pan: {x: number, y: number, k: number} | null,
 *   memo: {cellId?: string},
 *   height: number | null,
 *   emitted: string | null
 * }} WidgetState
 */

/** @type {Map<string, WidgetState>} */
const states = new Map();

/**
 * @param {string} id
 * @returns {WidgetState}
 */
export function stateOf(id) {
  let state = states.get(id);
  if (!state) {
    state = { pan: null, memo: {}, height: null, emitted: null };
    states.set(id, state);
  }
  return state;
}
