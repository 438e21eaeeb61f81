/**
 * `completion/complete` (MCP 2025-11-25, server/utilities/completion). Whatever shape a server answers is read loosely:
 * what is no text is left out.
 */
import { asList, isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CompleteRequest } from "./connection.ts";
import type { Peer } from "./peer.ts";

/** No values from a server that does not complete. Rejects with what the request rejects with. */
export async function complete(
  { capabilities, send }: Pick<Peer, "capabilities" | "send">,
  { prompt, argument, value, context, signal }: CompleteRequest,
): Promise<string[]> {
  if (!capabilities.completions) return [];
  const params = {
    ref: { type: "ref/prompt", name: prompt },
    argument: { name: argument, value },
    ...(Object.keys(context).length === 0 ? {} : { context: { arguments: context } }),
  };
  const timeout = LIMITS.completionMs;
  const answer = await send({ method: "completion/complete", params }, { signal, timeout });
  const { completion } = answer;
  const values = isObject(completion) ? asList(completion.values) : [];
  return values.filter((text) => typeof text === "string").slice(0, LIMITS.completions);
}
