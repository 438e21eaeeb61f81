/**
 * Shapes what a person asked a server for as part of that person's message: a prompt, or a resource. The limits are those
 * of a tool's result.
 */
import type { CallResult, ResultContent } from "../../../src/shared/protocol/calls.ts";
import { decode } from "../../../src/shared/protocol/codec.ts";
import { cleanText, withBases } from "../../../src/shared/text/unprintable.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import type { Results } from "../results/results.ts";
import { shapeAnywhere } from "../results/shape.ts";
import type { Supervisor } from "../servers/supervisor.ts";

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
