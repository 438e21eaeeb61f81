/**
 * The result for a codemode script: the whole answer of the server, as Pi's built-in MCP gives it, and never a part
 * that looks like the whole. The main thread reads the result in one turn, and Pi hands it on in another, so a result
 * that would block the main thread is stored in a file, and the script gets the path.
 */

import type { CallResult } from "../../../src/shared/protocol/calls.ts";
import type { JsonValue } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { formatBytes } from "../../../src/shared/text/size.ts";
import { jsonOf } from "../../shared/json/lossless.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import { redactValue } from "../secrets/redact.ts";
import type { ShapeOptions } from "./context.ts";

/** Measured cost on the main thread of a value, and of a key that no other object has, in addition to their bytes. */
const VALUE_BYTES = 64;
const KEY_BYTES = 256;

/** Cost of the values and keys of a result on the main thread. Counting stops beyond `most`. */
function costOf(root: unknown, most: number): { values: number; costBytes: number } {
  const keys = new Set<string>();
  const open: unknown[] = [root];
  let values = 0;
  const costBytes = (): number => values * VALUE_BYTES + keys.size * KEY_BYTES;
  while (open.length > 0 && costBytes() <= most) {
    const value = open.pop();
    values++;
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      // A list that is too long to be counted costs too much.
      if (value.length * VALUE_BYTES > most) return { values: values + value.length, costBytes: most + 1 };
      for (const item of value) open.push(item);
      continue;
    }
    for (const [key, member] of Object.entries(value)) {
      keys.add(key);
      open.push(member);
    }
  }
  return { values, costBytes: costBytes() };
}

type ScriptOptions = Pick<ShapeOptions, "server" | "tool" | "redact" | "store">;

async function tooLarge(
  json: string,
  bytes: number,
  { server, tool, store }: ScriptOptions,
): Promise<Pick<CallResult, "scriptProblem" | "scriptStoredAt">> {
  const saved = await store.save([json], `${server}-${tool}`, "json");
  const where =
    "path" in saved ? `All of it is in ${saved.path}` : `It could not be stored: ${saved.problem}`;
  const most = `at most ${formatBytes(LIMITS.scriptResultBytes)}, and each value counts ${VALUE_BYTES} B more`;
  return {
    scriptProblem: [
      `${server}/${tool} answered ${formatBytes(bytes)} of JSON, which is too much for a script (${most}).`,
      `${where}. The call was carried out: ask for less, or call the tool without a script.`,
    ].join(" "),
    ...("path" in saved ? { scriptStoredAt: saved.path } : {}),
  };
}

/** JSON of a result, with the server's own numbers in its structured content. */
function jsonOfResult({ structuredContent, ...rest }: Partial<CallToolResult>): string {
  if (structuredContent === undefined) return JSON.stringify(rest);
  return `${JSON.stringify(rest).slice(0, -1)},"structuredContent":${jsonOf(structuredContent)}}`;
}

/** Empty if the result cannot be written as JSON. */
export async function forScript(
  { _meta, ...result }: CallToolResult,
  options: ScriptOptions,
): Promise<Pick<CallResult, "scriptResult" | "scriptProblem" | "scriptStoredAt">> {
  const content = Array.isArray(result.content) ? result.content : [];
  const whole = { ...result, content };
  let json: string;
  let shown: unknown = whole;
  try {
    if (result.isError === true) shown = redactValue(whole as unknown as JsonValue, options.redact);
    json = jsonOfResult(shown as Partial<CallToolResult>);
  } catch {
    // V8 gives up on extreme depth. The script then gets the text.
    return {};
  }
  const bytes = Buffer.byteLength(json);
  const left = LIMITS.scriptResultBytes - bytes;
  if (left < 0 || costOf(shown, left).costBytes > left) return tooLarge(json, bytes, options);
  return { scriptResult: new TextEncoder().encode(json) };
}
