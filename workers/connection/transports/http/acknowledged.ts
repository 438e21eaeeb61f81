/**
 * Messages that a server only acknowledges: notifications, and answers to its own requests. Owns the bounds on them: a
 * server that asks without end or acknowledges nothing holds a limited number of connections for a limited time.
 */

import type { HttpResponse } from "../../web/client.ts";
import { discard } from "./answer.ts";
import { NotSent } from "./failure.ts";

/** Limit from the first byte of the request to the last byte of the answer. */
const ACKNOWLEDGED_MS = 10_000;
/** A script that is cancelled may cancel a hundred calls or more at once. */
export const MOST_UNACKNOWLEDGED = 256;

export class Acknowledged {
  readonly #open = new Set<AbortController>();

  /** Settles when the server has accepted the message. Rejects as `post` does, and with `NotSent` if too many wait. */
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

  /** Gives up all messages that are not acknowledged. */
  close(): void {
    for (const controller of this.#open) controller.abort();
  }
}
