/** The content of a snapshot, as it is written and as it is read. Types only. */

import type { CatalogSettings, ToolAnnotations } from "../protocol/session.ts";

/** A prompt or a skill of a server as a command of Pi. The texts are clean and bounded. */
export interface SnapshotPrompt {
  /** Name of the command in Pi, without the slash. */
  command: string;
  /** Name at the server, as the server wrote it. */
  prompt: string;
  /** It is a skill, which this tool of the server loads. */
  skillTool?: string;
  description?: string;
  /** Absent: none. */
  arguments?: SnapshotArgument[];
}

export interface SnapshotArgument {
  name: string;
  description?: string;
  required?: true;
}

export interface SnapshotServer {
  name: string;
  /** The server's purpose in one line, from the configuration or in the server's own words. */
  description?: string;
  /** The server's own words on how to use it, bounded. */
  instructions?: string;
  /** Absent: none are known or offered. */
  prompts?: SnapshotPrompt[];
  /** True if the tools are known, from the server or from a cache; false for a server that is only configured. */
  toolsKnown: boolean;
  /** What skills of the server lead to runs without a question (`"skills": "allow"`). */
  skillsRun?: true;
  /** True if a file of the project defines the server: it counts only while the project is trusted. */
  project: boolean;
}

interface DescribedTool {
  /** Name in Pi. */
  name: string;
  /** Name at the server, as the server wrote it. */
  tool: string;
  description: string;
  annotations?: ToolAnnotations;
  /** True if the tool is declared to the model from the first request on, without a search. */
  direct?: boolean;
  /** True if the name has no server in it: a tool of another extension may have the same name. */
  bare?: boolean;
  /** It reads a resource of the server, or loads a skill. Absent: the server's own tool. */
  kind?: "resource" | "skill";
}

/** A tool as it is written. */
export interface SnapshotTool extends DescribedTool {
  /** Index into `servers`. */
  server: number;
  /** Keys at the root of the input schema, so that the schema itself can be decoded on first access. */
  rootKeys: readonly RootKey[];
  /** msgpackr bytes of the input schema: always an object whose `type` is `object`. */
  schema: Uint8Array;
  /** msgpackr bytes of the output schema, with references that start at `STRUCTURED_POINTER`. */
  outputSchema?: Uint8Array;
}

/** The schemas of all tools of a snapshot, by position. Read on demand: one view for each tool would cost most of all. */
export interface StoredSchemas {
  /** Keys at the root of the input schema. Tools with equal roots share one list. */
  rootKeys(at: number): readonly RootKey[];
  input(at: number): Uint8Array;
  /** The input schema itself. */
  decoded(at: number): Record<string, unknown>;
  /** Undefined for a tool without an output schema. */
  output(at: number): Uint8Array | undefined;
}

/** A tool as it is read. */
export interface StoredTool extends DescribedTool {
  server: SnapshotServer;
  schemas: StoredSchemas;
  /** Position in `schemas`. */
  at: number;
}

interface SnapshotHead {
  settings: CatalogSettings;
  /** Description of the tool that finds the others; it lists the servers and their tools. */
  description: string;
  servers: SnapshotServer[];
  /** Bytes of the search index, which knows the tools by position. */
  index: Uint8Array;
}

/** A snapshot as it is written. */
export interface Snapshot extends SnapshotHead {
  tools: SnapshotTool[];
}

/** A snapshot as it is read. A tool is made when it is asked for, since there may be thousands. */
export interface OpenSnapshot extends SnapshotHead {
  /** Number of tools. */
  count: number;
  /** The tool at a position; the same object each time. */
  tool(at: number): StoredTool;
  /** Position of the tool with that name in Pi, or -1. */
  find(name: string): number;
  /** Positions of the direct tools, and of those whose names have no server in them. */
  marked(): number[];
}

/** Names of files below the agent folder that both sides must find. Pure: the caller joins paths and hashes. */
export const SNAPSHOT_FOLDER = "mcp-snapshots";
export const LOG_FILE = "mcp-threads.log";
export const TRACE_FILE = "mcp-trace.jsonl";
export const SIGN_IN_FOLDER = "mcp-oauth";

/** Where the snapshot's `Rest` lies (rest.ts): `.../<hash>.bin` -> `.../<hash>.rest.json`. */
export const restPath = (snapshotPath: string): string => snapshotPath.replace(/bin$/, "rest.json");

/** The project's own files, from its folder on. */
export const PROJECT_FILES = [".mcp.json", ".pi/mcp.json"] as const;

/**
 * The only servers that a session has, from `--mcp-servers` or `MCP_SERVERS`: names with commas between, each once and in
 * order. Undefined: all that the files define.
 */
export function onlyServersOf(written: unknown): string[] | undefined {
  if (typeof written !== "string") return undefined;
  const names = written.split(",").flatMap((name) => name.trim() || []);
  return names.length === 0 ? undefined : [...new Set(names)].sort();
}

/** Names a snapshot: there is one for each working directory, `--mcp-config` file, choice of servers and those that are switched off. */
export interface SnapshotKey {
  cwd: string;
  /** Absolute path of the file that `--mcp-config` names; undefined if the user's own file is read. */
  configFile?: string | undefined;
  /** As `onlyServersOf` gives them. */
  only?: readonly string[] | undefined;
  /** The servers that the person has switched off in the session, in order; undefined: none. */
  off?: readonly string[] | undefined;
}

/** Name of the snapshot's file in `SNAPSHOT_FOLDER`. `sha256Hex` answers the SHA-256 of a text in hexadecimal. */
export const snapshotFileName = (
  { cwd, configFile, only, off }: SnapshotKey,
  sha256Hex: (text: string) => string,
): string => {
  const file = configFile === undefined ? cwd : `${cwd}\u0000${configFile}`;
  const all = only || off ? `${file}\u0000\u0000${JSON.stringify(off ? { only, off } : only)}` : file;
  return `${sha256Hex(all).slice(0, 32)}.bin`;
};

/** A key of the root, with its value if many tools share that value. */
export type RootKey = string | readonly [key: string, value: string | boolean];

const SHARED = new Set(["type", "additionalProperties", "$schema"]);
/** The URL of a JSON Schema dialect has about 50 characters; a longer text is specific to one tool. */
const SHARED_CHARS = 100;

const isShared = (key: string, value: unknown): value is string | boolean =>
  SHARED.has(key) &&
  (typeof value === "boolean" || (typeof value === "string" && value.length <= SHARED_CHARS));

export const rootKeysOf = (schema: object): RootKey[] =>
  Object.entries(schema).map(([key, value]) => (isShared(key, value) ? [key, value] : key));
