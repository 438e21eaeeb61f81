/**
 * The requests of a person who types a prompt's command: the prompt's messages as one user message, and suggestions for
 * its arguments. A suggestion never starts a server and never fails: the person types on.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallResult } from "../../../src/shared/protocol/calls.ts";
import { encode } from "../../../src/shared/protocol/codec.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { abortable } from "../../shared/pace/abort.ts";
import type { PromptMessage } from "../mcp/mcp.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import { redactError } from "../secrets/secrets.ts";
import { type HandOverParts, handOver } from "./hand-over.ts";
import type { SessionRequests } from "./handler.ts";

export type PromptRequests = Pick<SessionRequests, "getPrompt" | "completePrompt">;

export interface PromptParts extends HandOverParts {
  started: Promise<unknown>;
}

/** Messages that are read in one turn of the loop: a server may send hundreds of thousands. */
const MESSAGES_A_TURN = 2_000;
/** Suggestions that are kept, because a person types on and goes back. */
const KEPT = 50;

/** Without annotations: whom a block is meant for does not count, since the person asked for the prompt. */
const withoutAnnotations = (block: unknown): unknown => {
  if (!isObject(block)) return block;
  const { annotations: _annotations, ...rest } = block;
  return rest;
};

/** The blocks of all messages. A line says where the role changes, because everything becomes one message of the user. */
async function blocksOf(messages: readonly PromptMessage[]): Promise<unknown[]> {
  const blocks: unknown[] = [];
  let role: PromptMessage["role"] = "user";
  for (const [at, message] of messages.entries()) {
    if (at % MESSAGES_A_TURN === MESSAGES_A_TURN - 1) await nextTurn();
    if (message.role !== role) blocks.push({ type: "text", text: `[${message.role}]` });
    role = message.role;
    for (const block of message.blocks) blocks.push(withoutAnnotations(block));
  }
  return blocks;
}

async function getPrompt(
  { server: name, prompt, args }: Parameters<PromptRequests["getPrompt"]>[0],
  signal: AbortSignal,
  { supervisor, results }: PromptParts,
): Promise<CallResult> {
  const server = supervisor.get(name);
  const startedAt = performance.now();
  try {
    const messages = await abortable(
      server.use((connection) => connection.getPrompt({ prompt, args, signal })),
      signal,
      `${name}/${prompt}`,
    );
    if (messages.length === 0) {
      throw new ThreadsError(
        "call_rejected",
        `${name} answered the prompt ${oneLine(prompt, 200)} without messages.`,
      );
    }
    const content = (await blocksOf(messages)) as CallToolResult["content"];
    return await handOver(content, { server, name: prompt, startedAt }, { supervisor, results });
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
