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

export const GONE =
  "The kernel was restarted or has ended: run the cells up to this one again to go on. The code stays and can be emitted.";

/**
 * @param {import("./types.js").Model} model
 * @param {{onSlow?: (slow: boolean) => void, onGone?: (gone: boolean) => void,
 *   onCount?: (waiting: number) => void}} [events]
 */
export function connect(model, events = {}) {
  let last = 0;
  /** @type {Map<number, {done: (reply: any) => void, drop: () => void}>} */
  const waiting = new Map();
  const tag = Math.random().toString(36).slice(2, 8); // two views of one widget hear the same replies
  let slow = 0;
  let lost = false; // the host says so: nobody is there to answer
  let gone = false; // as far as is known

  /** @param {boolean} now */
  function tell(now) {
    if (now !== gone) events.onGone?.(gone = now);
  }

  /** @param {boolean} now */
  function lose(now) {
    lost = now;
    tell(now);
    if (lost) for (const { drop } of [...waiting.values()]) drop();
  }

  /** @param {any} message */
  function hear(message) {
    const [from, number] = String(message?.id ?? "").split(":");
    if (from !== tag) return;
    lost = false;
    tell(false);
    waiting.get(Number(number))?.done(message);
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
      const drop = () => finish(() => reject(new RequestError(GONE, "KernelGone")));
      waiting.set(number, {
        drop,
        done: (reply) =>
          finish(() => {
            if (reply.ok) resolve(reply.result);
            else reject(new RequestError(reply.error?.message ?? "unknown error", reply.error?.type ?? ""));
          }),
      });
      events.onCount?.(waiting.size);
      const failed = () => {
        if (!waiting.has(number)) return;
        tell(true);
        drop();
      };
      if (lost) {
        drop();
        return;
      }
      try {
        const sent = /** @type {any} */ (model.send({ id: `${tag}:${number}`, method, params }));
        if (typeof sent?.catch === "function") sent.catch(failed);
      } catch {
        failed();
      }
    });
  }

  return {
    ask,
    lose,
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
