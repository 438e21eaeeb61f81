/** Reads the messages in one event of a server. Both HTTP transports use this. */
import type { JSONRPCMessage } from "../../mcp/wire/wire.ts";
import { parseMessages } from "../../messages/messages.ts";

/** The log cuts a note, after it has taken secrets out. */
const NOTED_CHARS = 16_384;

/** Empty if the event holds anything else, which is noted. Throws `TooLarge`. */
export function messagesIn(data: string, onNote: (note: string) => void): readonly JSONRPCMessage[] {
  const messages = parseMessages(data);
  if (!messages) onNote(`sent an event that is not a JSON-RPC message: ${data.slice(0, NOTED_CHARS)}`);
  return messages ?? [];
}
