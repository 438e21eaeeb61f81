/**
 * The requests of a person who types a prompt's command: the prompt's messages as one user message, and suggestions for
 * its arguments. A suggestion never starts a server and never fails: the person types on.
 */
import { type CallResult, encode } from "../../../src/shared/protocol/calls.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { abortable } from "../../shared/pace/abort.ts";
import { heldIn } from "../messages/heavy.ts";
import { redactError } from "../secrets/redact.ts";
import { type HandOverParts, handOver } from "./calls.ts";
import type { SessionRequests } from "./first-request.ts";

export type PromptRequests = Pick<SessionRequests, "getPrompt" | "completePrompt">;

export interface PromptParts extends HandOverParts {
  started: Promise<unknown>;
}

/** Suggestions that are kept, because a person types on and goes back. */
const KEPT = 50;

async function getPrompt(
  { server: name, prompt, args }: Parameters<PromptRequests["getPrompt"]>[0],
  signal: AbortSignal,
  { supervisor, results }: PromptParts,
): Promise<CallResult> {
  const server = supervisor.get(name);
  const startedAt = performance.now();
  try {
    const result = await abortable(
      server.use((connection) => connection.getPrompt({ prompt, args, signal })),
      signal,
      `${name}/${prompt}`,
    );
    if (result.content.length === 0 && !heldIn(result)) {
      throw new ThreadsError(
        "call_rejected",
        `${name} answered the prompt ${oneLine(prompt, 200)} without messages.`,
      );
    }
    return await handOver(result, { server, name: prompt, startedAt }, { supervisor, results });
  } catch (error) {
    throw redactError(error, server.redact);
  }
}

export function createPromptRequests(parts: PromptParts): PromptRequests {
  const kept = new Map<string, string[]>();
  let newest: AbortController | undefined;
  return {
    getPrompt: async (params, signal) => {
      await parts.started;
      return encode(await getPrompt(params, signal, parts));
    },
    completePrompt: async (params) => {
      const key = JSON.stringify(params);
      const before = kept.get(key);
      if (before) return before;
      // The person has typed on: nobody needs the answer to what was typed before.
      newest?.abort();
      newest = new AbortController();
      const { server: name, ...request } = params;
      const server = parts.supervisor.servers.find((one) => one.name === name);
      const { signal } = newest;
      const values = await server
        ?.ifConnected((connection) => connection.complete({ ...request, signal }))
        // The server does not complete this, or is slow: the person types on.
        ?.catch(() => undefined);
      if (!values) return [];
      const shown = values.filter((value) => oneLine(value, LIMITS.completionChars) === value);
      kept.set(key, shown);
      for (const oldest of kept.keys()) if (kept.size > KEPT) kept.delete(oldest);
      return shown;
    },
  };
}
