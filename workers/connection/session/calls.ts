/** One tool call of main: goes to the server, shapes its result, and answers the result as bytes. */

import {
  type CallProgress,
  type CallResult,
  type CallToolParams,
  decode,
  type ResultContent,
} from "../../../src/shared/protocol/calls.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { cleanText, withBases } from "../../../src/shared/text/unprintable.ts";
import { createProgressPacer } from "../../shared/pace/pace.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import type { Results } from "../results/results.ts";
import { type Shaped, shapeAnywhere } from "../results/shape.ts";
import { redactError } from "../secrets/redact.ts";
import { callTool } from "../servers/call.ts";
import type { Supervisor } from "../servers/supervisor.ts";

interface CallContext {
  supervisor: Supervisor;
  emit: (event: WorkerEvent) => void;
  signal: AbortSignal;
  results: Results;
}

/** Answers a msgpackr-encoded `CallResult`. Throws `ThreadsError` without secrets of the server's definition. */
export async function runCall(
  params: CallToolParams,
  context: CallContext,
): Promise<Uint8Array<ArrayBuffer>> {
  const { server, tool, callId } = params;
  const { supervisor, emit, signal, results } = context;
  const stats = results.stats();
  const called = supervisor.get(server);
  const progress = createProgressPacer<CallProgress>(LIMITS.progressIntervalMs, (latest) =>
    emit({ type: "progress", callId, ...latest }),
  );
  let startedAt = performance.now();
  const onYes = (): void => {
    startedAt = performance.now();
  };
  const record = (result?: Shaped): void =>
    stats?.record({
      at: Date.now(),
      server,
      tool,
      failed: result?.isError ?? true,
      receivedBytes: result?.sizes?.received ?? 0,
      shownBytes: result?.sizes?.shown ?? 0,
      savedTextBytes: result?.sizes?.savedText ?? 0,
      durationMs: Math.round(performance.now() - startedAt),
    });
  try {
    const onProgress = progress.push;
    const result = await callTool(called, { tool, args: params.args, signal, onProgress }, onYes);
    const durationMs = performance.now() - startedAt;
    const wantsStructured = params.wantsStructured === true;
    const shaped = await shapeAnywhere(result, {
      server,
      tool,
      durationMs,
      store: results.store,
      wantsStructured,
      redact: called.redact,
      secrets: called.secrets,
      ...results.settingsFor(called, supervisor.servers),
    });
    record(shaped);
    return shaped.bytes;
  } catch (error) {
    record();
    throw redactError(error, called.redact);
  } finally {
    progress.stop();
  }
}

export interface HandOverParts {
  supervisor: Pick<Supervisor, "get" | "servers">;
  results: Pick<Results, "store" | "settingsFor">;
}

/** Pi draws a message of the user as it is, so no text may hold characters that act on a terminal or end Pi. */
const printable = (content: ResultContent): ResultContent =>
  content.type === "text" ? { ...content, text: withBases(cleanText(content.text)) } : content;

interface HandedOver {
  server: ReturnType<Supervisor["get"]>;
  /** Of the prompt or the resource. */
  name: string;
  /** Of `performance.now()`. */
  startedAt: number;
  /** The result also holds what the server sent, unchanged. */
  wantsStructured?: boolean;
}

export async function handOver(
  result: CallToolResult,
  { server, name, startedAt, wantsStructured = false }: HandedOver,
  { supervisor, results }: HandOverParts,
): Promise<CallResult> {
  const { bytes } = await shapeAnywhere(result, {
    server: server.name,
    tool: name,
    durationMs: performance.now() - startedAt,
    store: results.store,
    wantsStructured,
    redact: server.redact,
    secrets: server.secrets,
    ...results.settingsFor(server, supervisor.servers),
    toon: false,
  });
  const shaped = decode(bytes) as CallResult;
  return { ...shaped, content: shaped.content.map(printable) };
}
