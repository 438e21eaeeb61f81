/**
 * Messages that a server only acknowledges: notifications, and replies to its own requests. A server that asks
 * without end, or acknowledges nothing, holds only so many connections, and each only for so long.
 */
import { discard } from "./answer.ts";
import type { HttpResponse } from "./client.ts";
import { NotSent } from "./failure.ts";

/** From the first byte of the request to the last of the answer. */
const ACKNOWLEDGED_MS = 10_000;
/** A cancelled script may cancel some hundred calls at once. */
export const MOST_UNACKNOWLEDGED = 256;

export class Acknowledged {
  readonly #open = new Set<AbortController>();

  /** Settles when the server has accepted the message. Rejects as `post`, and with `NotSent` where too many wait. */
  async send(post: (signal: AbortSignal) => Promise<HttpResponse>): Promise<void> {
    if (this.#open.size >= MOST_UNACKNOWLEDGED) {
      throw new NotSent(`${MOST_UNACKNOWLEDGED} messages to it are not acknowledged yet`);
    }
    const controller = new AbortController();
    this.#open.add(controller);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      controller.abort();
    }, ACKNOWLEDGED_MS);
    const end = (): void => {
      clearTimeout(timer);
      this.#open.delete(controller);
    };
    try {
      const { body } = await post(controller.signal);
      void discard(body).then(end);
    } catch (error) {
      end();
      throw isLate
        ? Object.assign(new Error("it was not acknowledged in time"), { code: "ETIMEDOUT" })
        : error;
    }
  }

  /** Gives up what is open. */
  close(): void {
    for (const controller of this.#open) controller.abort();
  }
}
