/**
 * One server entry: what a file may say, checked with zod, and what the rest of the worker reads of it.
 * A mistake is a list of messages by key, never an exception.
 */
import * as z from "zod";
import { LIMITS } from "../../../src/protocol/limits.ts";
import type { TransportKind } from "../../../src/protocol/types.ts";
import type { Lifecycle } from "../server-state.ts";

const strings = z.record(z.string(), z.string());

const asTimerMs = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : Math.min(ms, LIMITS.longestTimerMs);

const entrySchema = z.looseObject({
  type: z.enum(["stdio", "http", "streamable-http", "sse"]).optional(),
  command: z.string().min(1).optional(),
  args: z.array(z.string()).optional(),
  env: strings.optional(),
  cwd: z.string().optional(),
  url: z.url({ protocol: /^https?$/, error: "expected an http or https URL" }).optional(),
  headers: strings.optional(),
  enabled: z.boolean().optional(),
  disabled: z.boolean().optional(),
  timeout: z.number().positive().optional(),
  requestTimeoutMs: z.number().positive().optional(),
  startupTimeoutMs: z.number().positive().optional(),
  description: z.string().optional(),
  lifecycle: z.enum(["lazy", "eager", "keep-alive"]).optional(),
  idleTimeout: z.number().nonnegative().optional(),
  debug: z.boolean().optional(),
});

export type StdioTarget = {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string | undefined;
};
export type HttpTarget = { url: string; headers: Record<string, string>; sseOnly: boolean };

export interface ServerDefinition {
  name: string;
  /** File that defines it. */
  file: string;
  project: boolean;
  enabled: boolean;
  description: string | undefined;
  target: ({ kind: "stdio" } & StdioTarget) | ({ kind: "http" } & HttpTarget);
  requestTimeoutMs: number | undefined;
  startupTimeoutMs: number | undefined;
  lifecycle: Lifecycle;
  /** Undefined: what the settings say, else the default of the lifecycle. 0: never. */
  idleTimeoutMs: number | undefined;
  /** Its stderr goes to the log. */
  debug: boolean;
  /** The entry as it stands in the file: what is hashed. */
  raw: Record<string, unknown>;
}

export interface EntryMistake {
  /** Path of the key below the entry; empty for the entry itself. */
  path: (string | number)[];
  message: string;
  remedy: string;
}

export const transportOf = (definition: ServerDefinition): TransportKind => {
  if (definition.target.kind === "stdio") return "stdio";
  return definition.target.sseOnly ? "sse" : "http";
};

type Entry = z.infer<typeof entrySchema>;

const SHAPE =
  'Write {"command": "...", "args": [...]} for a local server or {"url": "https://..."} for a remote one.';

function targetOf(entry: Entry): ServerDefinition["target"] | EntryMistake {
  const wantsStdio = entry.type === "stdio" || (entry.type === undefined && entry.command !== undefined);
  if (entry.command !== undefined && entry.url !== undefined && entry.type === undefined) {
    return {
      path: ["url"],
      message: "both command and url are given",
      remedy: 'Remove one, or say which with "type".',
    };
  }
  if (wantsStdio) {
    if (entry.command === undefined) return { path: [], message: "command is missing", remedy: SHAPE };
    const { command, args = [], env = {}, cwd } = entry;
    return { kind: "stdio", command, args, env, cwd };
  }
  if (entry.url === undefined)
    return { path: [], message: "neither command nor url is given", remedy: SHAPE };
  return { kind: "http", url: entry.url, headers: entry.headers ?? {}, sseOnly: entry.type === "sse" };
}

/** Checks one entry. `raw` is what JSON gave. */
export function parseEntry(
  name: string,
  raw: unknown,
  source: { file: string; project: boolean },
): { definition: ServerDefinition } | { mistakes: EntryMistake[] } {
  if (name === "" || name === "__proto__") {
    return {
      mistakes: [{ path: [], message: "this is not a usable server name", remedy: "Rename the server." }],
    };
  }
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
    const found = raw === null ? "null" : Array.isArray(raw) ? "an array" : `a ${typeof raw}`;
    return { mistakes: [{ path: [], message: `expected an object, found ${found}`, remedy: SHAPE }] };
  }
  const checked = entrySchema.safeParse(raw);
  if (!checked.success) {
    const mistakes = checked.error.issues.map((issue) => ({
      path: issue.path.map((key) => (typeof key === "symbol" ? String(key) : key)),
      message: issue.message.replace(/^Invalid input: /, ""),
      remedy: "Correct or remove this key.",
    }));
    return { mistakes };
  }
  const entry = checked.data;
  const target = targetOf(entry);
  if ("message" in target) return { mistakes: [target] };
  const timeoutMs = entry.timeout === undefined ? undefined : entry.timeout * 1_000;
  return {
    definition: {
      name,
      ...source,
      enabled: entry.enabled ?? !(entry.disabled ?? false),
      description: entry.description,
      target,
      requestTimeoutMs: asTimerMs(entry.requestTimeoutMs ?? timeoutMs),
      startupTimeoutMs: asTimerMs(entry.startupTimeoutMs),
      lifecycle: entry.lifecycle ?? "lazy",
      idleTimeoutMs: asTimerMs(entry.idleTimeout === undefined ? undefined : entry.idleTimeout * 60_000),
      debug: entry.debug ?? false,
      raw: raw as Record<string, unknown>,
    },
  };
}
