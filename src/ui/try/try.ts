/**
 * A tool that a person tries: a form made of its schema, the call, and the result as the model would read it. The call goes the
 * way of the model's calls, with the same limits and the same questions of approval. Must not: add anything to the transcript.
 */
import { randomUUID } from "node:crypto";
import { type CatalogTool, eachTool } from "../../catalog/catalog.ts";
import type { PiContext, PiToolContext, ToolResult } from "../../pi/api.ts";
import { serverName } from "../../report/server-name.ts";
import { jsonOf, numberOf } from "../../shared/asks/check.ts";
import { type CallResult, decode, type FieldValue, type ToolField } from "../../shared/protocol/calls.ts";
import type { JsonValue } from "../../shared/protocol/errors.ts";
import { counted, formatBytes, formatMs } from "../../shared/text/amounts.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { printable } from "../../shared/text/width.ts";
import { fillIn } from "../asks/form.ts";
import type { McpHost } from "../mcp-host.ts";
import { tickLines } from "../ticks.ts";

const NAME_CHARS = 200;

function argumentOf({ field, values }: ToolField, value: Exclude<FieldValue, undefined>): unknown {
  if (field.kind === "number") return numberOf(String(value));
  if (field.kind === "choice") return values[Number(value)];
  if (Array.isArray(value)) return value.map((position): JsonValue | undefined => values[position]);
  return field.kind === "text" && field.format === "json" ? jsonOf(String(value)) : value;
}

/** The arguments of the call. What is left out is not sent. */
export const argumentsOf = (
  fields: readonly ToolField[],
  given: readonly FieldValue[],
): Record<string, unknown> =>
  Object.fromEntries(
    fields.flatMap((one, at) => {
      const value = given[at];
      return value === undefined ? [] : [[one.name, argumentOf(one, value)]];
    }),
  );

/** What the model would read, after a line for the person. */
function resultText({ content, isError }: ToolResult, tookMs: number): string {
  const blocks = content.map((block) =>
    block.type === "text"
      ? block.text
      : `[${block.mimeType}, ${formatBytes(Math.floor((block.data.length * 3) / 4))}]`,
  );
  const how = isError === true ? "It failed" : "It answered";
  return [`${how} after ${formatMs(tookMs)}. The model would read:`, "", ...blocks].join("\n");
}

export interface Wanted {
  server: string;
  /** The server's own name of it. */
  tool: string;
}

function find({ server, tool }: Wanted, host: Pick<McpHost, "catalog">): CatalogTool | undefined {
  for (const one of eachTool(host.catalog())) if (one.tool === tool && one.server.name === server) return one;
  return undefined;
}

interface Trial {
  signal: AbortSignal;
  /** The form is filled in, and the call begins. */
  onCall?: () => void;
}

/** The text for the person; undefined: the form was closed, and nothing was called. Rejects with what the worker says. */
export async function tryTool(
  wanted: Wanted,
  ctx: PiContext,
  host: Pick<McpHost, "ask" | "catalog" | "makeTool">,
  { signal, onCall }: Trial,
): Promise<string | undefined> {
  const tool = find(wanted, host);
  const shown = oneLine(wanted.tool, NAME_CHARS);
  if (!tool) return `${shown} of ${serverName(wanted.server)} is hidden, so nobody can call it.`;
  const { fields, left } = await host.ask("toolForm", { server: wanted.server, tool: wanted.tool });
  const others = left === 0 ? "" : ` ${counted(left, "further argument")} cannot be given here.`;
  const title =
    fields.length === 0
      ? `Call ${shown} of ${serverName(wanted.server)}? It takes no arguments.`
      : `Call ${shown} of ${serverName(wanted.server)}? Choose a line to change it.${others}`;
  const form = { kind: "form" as const, message: "", fields: fields.map(({ field }) => field) };
  const at = { ctx, server: wanted.server, signal, tick: tickLines };
  const given = await fillIn(form, at, { title: printable(title), send: "Call it" });
  if (!given || signal.aborted) return undefined;
  onCall?.();
  const startedAt = performance.now();
  const piTool = host.makeTool(tool, async ({ callId, server, tool: name, args }) => {
    const bytes = await host.ask("callTool", { callId, server, tool: name, args }, signal);
    return decode(bytes) as CallResult;
  });
  // Such a call reads nothing of its context.
  const context = ctx as PiToolContext;
  const args = argumentsOf(fields, given);
  const result = await piTool.execute(`try-${randomUUID()}`, args, signal, undefined, context);
  return resultText(result, performance.now() - startedAt);
}
