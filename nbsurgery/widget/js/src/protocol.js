// @ts-check
// Requests to the kernel. Each ends with a result or an error in words, at the latest at its time limit.

const LIMIT = 900; // seconds; a cell at work may take long, and an edit waits for its end
const PATIENCE = 2500; // ms after which a person is told that the kernel is at work

export class RequestError extends Error {
  /**
   * @param {string} message
   * @param {string} type
   */
  constructor(message, type) {
    super(message);
    this.type = type;
  }
}

const GONE =
  "The kernel does not know this picture any more (was it restarted?). " +
  "Run its cell again to go on; the picture and the code stay readable.";

/**
 * @param {import("./types.js").Model} model
 * @param {{onSlow?: (slow: boolean) => void, onGone?: (gone: boolean) => void,
 *   onCount?: (waiting: number) => void}} [events]
 */
export function connect(model, events = {}) {
  let last = 0;
  /** @type {Map<number, {done: (reply: any) => void}>} */
  const waiting = new Map();
  const tag = Math.random().toString(36).slice(2, 8); // two views of one widget hear the same replies
  let slow = 0;

  /** @param {any} message */
  function hear(message) {
    const [from, number] = String(message?.id ?? "").split(":");
    if (from === tag) waiting.get(Number(number))?.done(message);
  }
  model.on("msg:custom", hear);

  /**
   * @param {string} method
   * @param {any} [params]
   * @param {{timeout?: number}} [options] time limit in seconds
   * @returns {Promise<any>}
   */
  function ask(method, params = {}, options = {}) {
    const number = ++last;
    const limit = options.timeout ?? LIMIT;
    return new Promise((resolve, reject) => {
      let told = false;
      const late = setTimeout(() => {
        told = true;
        if (slow++ === 0) events.onSlow?.(true);
      }, PATIENCE);
      const end = setTimeout(() => {
        const message = `No answer from the kernel to “${method}” in ${limit} s. It may be busy or gone.`;
        finish(() => reject(new RequestError(message, "Timeout")));
      }, limit * 1000);
      /** @param {() => void} settle */
      function finish(settle) {
        clearTimeout(late);
        clearTimeout(end);
        waiting.delete(number);
        events.onCount?.(waiting.size);
        if (told && --slow === 0) events.onSlow?.(false);
        settle();
      }
      waiting.set(number, {
        done: (reply) =>
          finish(() => {
            events.onGone?.(false);
            if (reply.ok) resolve(reply.result);
            else reject(new RequestError(reply.error?.message ?? "unknown error", reply.error?.type ?? ""));
          }),
      });
      events.onCount?.(waiting.size);
      const gone = () => {
        if (!waiting.has(number)) return;
        events.onGone?.(true);
        finish(() => reject(new RequestError(GONE, "KernelGone")));
      };
      try {
        const sent = /** @type {any} */ (model.send({ id: `${tag}:${number}`, method, params }));
        if (typeof sent?.catch === "function") sent.catch(gone);
      } catch {
        gone();
      }
    });
  }

  return {
    ask,
    close() {
      model.off("msg:custom", hear);
      for (const { done } of [...waiting.values()])
        done({ ok: false, error: { type: "Closed", message: "The picture was closed." } });
    },
  };
}

/**
 * Sends changed traits. Without a kernel they stay in the page: the picture goes on working.
 * @param {import("./types.js").Model} model
 */
export function save(model) {
  try {
    model.save_changes();
  } catch {
    // the next request tells the person
  }
}
