/**
 * One live connection to a server: lists, calls, resources, prompts, in either era of the protocol. Knows nothing of
 * transports and lifecycles. A failed call rejects with a `ThreadsError` that says which server failed, why, and what to do.
 */

import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import type { CallProgress } from "../../../src/shared/protocol/calls.ts";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { asList, isObject } from "../../../src/shared/protocol/values.ts";
import { WAITS } from "../../shared/hub/wire.ts";
import { type AwakeTimer, startAwakeTimer } from "../../shared/pace/awake.ts";
import { declaredSkills } from "../../shared/skills.ts";
import type { AskPauses } from "../asks/asks.ts";
import { asToolResult } from "../messages/heavy.ts";
import type { Redactor } from "../secrets/redact.ts";
import { type Peer, type PeerCall, urlRequired } from "./both-eras.ts";
import type { CallRequest, CompleteRequest, Connection, ConnectionParts } from "./connection.ts";
import {
  callCapMs,
  callFailure,
  isClosed,
  isTimeout,
  listFailure,
  refusedAnswer,
  startLimitMs,
  urlRequiredFailure,
} from "./failures.ts";
import { getSkill, listPrompts, listResources, listSkills, listTools, readDirectory } from "./lists.ts";

/** No values from a server that does not complete. Rejects with what the request rejects with. */
async function complete(
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

const MESSAGE_CHARS = 500;

/** Reads the params of a progress notification (MCP 2025-11-25, basic/utilities/progress) of any shape. */
export function readProgress(params: Parameters<PeerCall["onProgress"]>[0], redact: Redactor): CallProgress {
  const progress = typeof params.progress === "number" ? params.progress : undefined;
  const total = typeof params.total === "number" && params.total > 0 ? params.total : undefined;
  const counted = `${progress ?? "?"}${total === undefined ? "" : ` of ${total}`}`;
  const message =
    typeof params.message === "string" && params.message !== ""
      ? redact(params.message).slice(0, MESSAGE_CHARS).toWellFormed()
      : counted;
  return {
    message,
    ...(progress === undefined ? {} : { progress }),
    ...(total === undefined ? {} : { total }),
  };
}

interface CallClockOptions {
  /** The caller's signal. */
  caller: AbortSignal;
  limitMs: number;
  capMs: number;
  /** Absent: the clock never stands still. */
  pauses: AskPauses | undefined;
  /** The reason with which the signal aborts. */
  reason: () => unknown;
}

/**
 * The clock of one call: the time without an answer or progress, and the cap that progress does not renew. Both stand still
 * while the server waits for the user, or this process does not run, which the timers of the SDK cannot.
 */
export class CallClock {
  readonly #options: CallClockOptions;
  readonly #expired = new AbortController();
  readonly #unwatch: (() => void) | undefined;
  #limitLeft: number;
  #capLeft: number;
  #timer: AwakeTimer | undefined;

  constructor(options: CallClockOptions) {
    const { caller, limitMs, capMs, pauses } = options;
    this.#options = options;
    this.#limitLeft = limitMs;
    this.#capLeft = capMs;
    if (caller.aborted) this.#giveUp();
    // A listener costs a tenth of what a signal of two signals costs.
    caller.addEventListener("abort", this.#giveUp, { once: true });
    this.#unwatch = pauses?.watch(() => (pauses.isOpen ? this.#hold() : this.#run()));
    this.#run();
  }

  /** Aborts with `reason` when the time is over, and with the caller's signal until the clock is stopped. */
  get signal(): AbortSignal {
    return this.#expired.signal;
  }

  /** Progress came. `limitMs`: until the next one, if that is not the limit of the call. */
  renew(limitMs = this.#options.limitMs): void {
    this.#hold();
    this.#limitLeft = limitMs;
    this.#run();
  }

  stop(): void {
    this.#options.caller.removeEventListener("abort", this.#giveUp);
    this.#unwatch?.();
    this.#hold();
  }

  readonly #giveUp = (): void => this.#expired.abort(this.#options.caller.reason);

  #hold(): void {
    const ranMs = this.#timer?.stop() ?? 0;
    this.#timer = undefined;
    this.#limitLeft -= ranMs;
    this.#capLeft -= ranMs;
  }

  #run(): void {
    const { pauses, reason } = this.#options;
    if (this.#timer !== undefined || pauses?.isOpen || this.signal.aborted) return;
    const leftMs = Math.min(this.#limitLeft, this.#capLeft);
    this.#timer = startAwakeTimer(leftMs, () => this.#expired.abort(reason()));
  }
}

/** Statuses with which servers over HTTP refuse a method that they do not know. */
const NO_METHOD: readonly unknown[] = [400, 404, 405, 422, 501];

/**
 * Whether the error of a list that nobody promised means that there is none: the server refuses to list it, or says nothing. A
 * failure on the way to the server would otherwise take away the tools that are known.
 */
const isNoList = (error: unknown): boolean =>
  !refusedAnswer(error) && (!(error instanceof ThreadsError) || NO_METHOD.includes(error.data?.status));

/** Whether the server runs calls as tasks of MCP 2025-11-25 (basic/utilities/tasks, "Capabilities"). */
function runsTasks({ protocol, capabilities: { tasks } }: Pick<Peer, "protocol" | "capabilities">): boolean {
  const requests = isObject(tasks) && isObject(tasks.requests) ? tasks.requests : {};
  return protocol.era === "legacy" && isObject(requests.tools) && isObject(requests.tools.call);
}

/** Far more characters than any model is shown. */
const INSTRUCTIONS_CHARS = 100_000;

export function toConnection(peer: Peer, parts: ConnectionParts): Connection {
  const listing = (signal: AbortSignal) => ({
    signal,
    limitMs: startLimitMs(parts.definition),
    onNote: parts.onNote,
    era: peer.protocol.era,
    hasTasks: runsTasks(peer),
  });
  return {
    transport: parts.transport,
    pid: parts.pid,
    sharing: () => parts.sharing?.(),
    // A new session may say other things of the server.
    get protocol() {
      return peer.protocol;
    },
    get instructions() {
      return peer.instructions?.slice(0, INSTRUCTIONS_CHARS).toWellFormed();
    },
    listTools: async (signal) => {
      const { tools: declared, resources, prompts } = peer.capabilities;
      if (!declared && (resources || prompts)) return [];
      const limits = listing(signal);
      try {
        // Some servers that declare nothing at all have only forgotten to.
        const limitMs = declared ? limits.limitMs : Math.min(limits.limitMs, LIMITS.healthAnswerMs);
        const tools = await listTools(peer.send, { ...limits, limitMs });
        return peer.takeTools?.(tools) ?? tools;
      } catch (error) {
        if (!declared && peer.isOpen && !signal.aborted && isNoList(error)) {
          parts.onNote(`declares no tools, and lists none: ${messageOf(error)}`);
          return [];
        }
        throw listFailure(parts, { error, timedOut: isTimeout(error), closed: isClosed(error) });
      }
    },
    listResources: async (signal) =>
      peer.capabilities.resources
        ? listResources(peer.send, listing(signal))
        : { resources: [], templates: [] },
    get skills() {
      return declaredSkills(peer.capabilities);
    },
    listSkills: async (signal) =>
      declaredSkills(peer.capabilities) ? listSkills(peer.send, listing(signal)) : undefined,
    getSkill: (uri, signal) => getSkill(peer.send, { uri, signal }),
    readDirectory: (uri, signal) => readDirectory(peer.send, listing(signal), uri),
    listPrompts: async (signal) => (peer.capabilities.prompts ? listPrompts(peer.send, listing(signal)) : []),
    callTool: async (call) => {
      const params = { name: call.tool, arguments: call.args };
      return asToolResult("call", await requestFor(peer, parts, call, { method: "tools/call", params }));
    },
    // Answers like a tool that embeds the resource (MCP 2025-11-25, server/resources).
    readResource: async (call) => {
      const params = { uri: call.uri };
      return asToolResult(
        "resource",
        await requestFor(peer, parts, call, { method: "resources/read", params }),
      );
    },
    getPrompt: async ({ prompt, args, signal }) => {
      const call = { tool: prompt, signal, timeoutMs: LIMITS.promptTimeoutMs, onProgress: () => undefined };
      const params = { name: prompt, arguments: args };
      const result = await requestFor(peer, parts, call, { method: "prompts/get", params });
      return asToolResult("prompt", result);
    },
    complete: (request) => complete(peer, request),
    ping: (timeoutMs) => peer.ping(timeoutMs),
    heard: parts.heard,
    memory: () => peer.memory?.(),
    isStale: () => peer.isStale?.() ?? false,
    isFromMemory: () => peer.isFromMemory ?? false,
    whyClosed: parts.whyClosed,
    failure: () => parts.failure?.(),
    close: parts.close,
  };
}

/** Sends the request of a call, hands its progress on, and rejects with a `ThreadsError`. */
async function requestFor(
  peer: Peer,
  parts: ConnectionParts,
  call: Omit<CallRequest, "args">,
  request: { method: string; params: Record<string, unknown> },
): Promise<Record<string, unknown>> {
  const { name } = parts.definition;
  const { timeoutMs } = call;
  const clock = new CallClock({
    caller: call.signal,
    limitMs: timeoutMs,
    capMs: callCapMs(call),
    pauses: parts.asks,
    // As a timeout of the SDK (`isTimeout`).
    reason: () => McpError.fromError(ErrorCode.RequestTimeout, "Request timed out", { timeout: timeoutMs }),
  });
  const end = parts.asks?.callBegins();
  /** The hub of shared servers holds the call back: the server has not seen it. */
  let waits = false;
  const { signal } = clock;
  try {
    return await peer.call({
      request,
      subject: `${name}/${call.tool}`,
      signal,
      onProgress: (params) => {
        waits = parts.sharing?.() !== undefined && isObject(params._meta) && params._meta[WAITS] === true;
        // The cap ends the wait for a call that never ends.
        clock.renew(waits ? Number.POSITIVE_INFINITY : timeoutMs);
        call.onProgress(readProgress(params, parts.redact));
      },
    });
  } catch (error) {
    clock.stop();
    // Servers answer -32000, which is the SDK's code for a closed connection, for errors of any kind.
    const answered = error instanceof McpError && peer.isOpen;
    const outcome = await urlRequired(error, parts.asks, call.signal);
    if (outcome !== undefined && !call.signal.aborted) throw urlRequiredFailure(parts, call, outcome);
    throw callFailure(name, { parts, call, error, answered, waits });
  } finally {
    clock.stop();
    end?.(signal.aborted || call.signal.aborted ? "given-up" : "done");
  }
}
