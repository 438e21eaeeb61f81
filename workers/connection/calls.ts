/** One tool call from main: to the server, through the shaping of its result, back as bytes. */
import { encode } from "../../src/protocol/codec.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import type { CallResult, CallToolParams, WorkerEvent } from "../../src/protocol/types.ts";
import { shapeContent } from "./content.ts";
import { createProgressPacer } from "./progress.ts";
import type { Supervisor } from "./supervisor.ts";

/** A msgpackr-encoded `CallResult`. Throws `ThreadsError`. */
export async function runCall(
  params: CallToolParams,
  {
    supervisor,
    emit,
    signal,
  }: { supervisor: Supervisor; emit: (event: WorkerEvent) => void; signal: AbortSignal },
): Promise<Uint8Array<ArrayBuffer>> {
  const startedAt = performance.now();
  const progress = createProgressPacer(LIMITS.progressIntervalMs, (message) =>
    emit({ type: "progress", callId: params.callId, message }),
  );
  const call = { tool: params.tool, args: params.args, signal, onProgress: progress.tell };
  const result = await supervisor.get(params.server).callTool(call).finally(progress.stop);
  const shaped: CallResult = {
    content: shapeContent(result),
    isError: result.isError === true,
    durationMs: performance.now() - startedAt,
  };
  return encode(shaped);
}
