/** Hands on the messages in one event of a server. All HTTP transports use this. */

import { startOf } from "../../messages/pieces.ts";
import { type MessageStream, receive } from "../../messages/receive.ts";
import type { ServerEvent } from "./events.ts";

/** The log cuts a note, after it has taken secrets out. */
const NOTED_BYTES = 16_384;

/** Anything else in the event is noted. Answers and throws what `receive` does. */
export function handEvent({ type, data }: ServerEvent, to: MessageStream): undefined | Promise<unknown> {
  if (type !== "message" || data.length === 0) return undefined;
  return receive(data, {
    ...to,
    onNoise: () => to.onNote(`sent an event that is not a JSON-RPC message: ${startOf(data, NOTED_BYTES)}`),
  });
}
