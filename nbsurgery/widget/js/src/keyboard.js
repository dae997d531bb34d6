// @ts-check
// The keys of the canvas: walk the picture, open and close, search, undo.

/**
 * @param {import("./types.js").View} view
 * @param {HTMLElement} canvas
 * @param {{painter: import("./scene.js").Painter, selection: import("./selection.js").Selection,
 *   camera: import("./gestures.js").Camera, toggle: (scope: string) => void, search: () => void,
 *   menu: () => void, escape: () => boolean, undo: () => void, redo: () => void}} parts
 */
export function listenToKeys(view, canvas, parts) {
  const { signal } = view;
  view.root.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the notebook has its own meaning for most keys
    const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(/** @type {Element} */ (event.target).tagName);
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if (key === "escape") {
      if (!parts.escape()) parts.selection.set([]);
      canvas.focus({ preventScroll: true });
      event.preventDefault();
    } else if (writing) {
      return;
    } else if (command && key === "z") {
      if (event.shiftKey) parts.redo();
      else parts.undo();
      event.preventDefault();
    } else if (command && key === "y") {
      parts.redo();
      event.preventDefault();
    } else if (key === "/" && !command) {
      parts.search();
      event.preventDefault();
    }
  }, { signal });

  canvas.addEventListener("keydown", (event) => {
    if (event.target !== canvas || event.ctrlKey || event.metaKey || event.altKey) return;
    const { painter, selection, camera } = parts;
    const list = painter.order.filter((item) => item.parent !== null);
    const name = selection.names[selection.names.length - 1];
    const current = name === undefined ? undefined : painter.find(name);
    const at = current ? list.indexOf(current) : -1;
    /** @param {import("./scene.js").Shown | undefined} item */
    const pick = (item) => {
      if (!item) return;
      selection.set(item.kind === "box" ? [...item.data.scopes] : [item.name]);
      camera.show(item.kind === "group" ? { ...item, h: item.data.head } : item);
    };
    switch (event.key) {
      case "ArrowDown":
        pick(list[at + 1]);
        break;
      case "ArrowUp":
        pick(at < 0 ? list[list.length - 1] : list[at - 1]);
        break;
      case "ArrowLeft":
        if (current?.kind === "group") parts.toggle(current.name);
        else if (current?.parent) {
          const up = painter.shown.get(current.parent);
          if (up?.parent) pick(up);
        }
        break;
      case "ArrowRight":
        if (current?.kind === "box") parts.toggle(current.name);
        else if (current?.kind === "group") pick(list[at + 1]);
        break;
      case "Enter":
      case " ":
        if (event.key === " " && current && current.kind !== "row") parts.toggle(current.name);
        else if (current) parts.menu();
        break;
      case "+":
      case "=":
        camera.zoom(1.25, undefined, true);
        break;
      case "-":
        camera.zoom(0.8, undefined, true);
        break;
      case "0":
      case "f":
        camera.fit();
        break;
      default:
        return;
    }
    event.preventDefault();
  }, { signal });
}
