// @ts-check
// The front end's one export, as anywidget wants it.

import { open } from "./view.js";

export default {
  /** @param {{model: import("./types.js").Model, el: HTMLElement}} context */
  render({ model, el }) {
    return open(model, el);
  },
};
