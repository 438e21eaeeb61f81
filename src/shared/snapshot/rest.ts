/**
 * What the connection worker leaves for a session that needs no worker yet: the plan as main would be told of it, and all that
 * the plan depends on. It lies beside the snapshot (`restPath`). Main trusts it while nothing of that has changed. Pure.
 */
import type { CatalogSettings, ServerStatus } from "../protocol/session.ts";

export const REST_VERSION = 2;
/** What main reads and parses at a start. A configuration of 200 servers has 100 KB. */
export const REST_BYTES = 128 * 1024;
/** Files that main looks at: at a start, and each second. */
export const REST_FILES = 100;
/** An older one does not count: once a day a worker looks at everything, such as the age of what servers have listed. */
export const REST_MS = 24 * 60 * 60 * 1_000;

export interface Rest {
  version: typeof REST_VERSION;
  /** Checksum of the snapshot that has the same servers, all with their tools. */
  checksum: number;
  /** Whether the project was trusted: its files count only then. */
  trusted: boolean;
  /** `restPlace` of the process. */
  place: string;
  /** When it was made, in milliseconds since the epoch. */
  madeAt: number;
  /** Every file that the plan was made of, or would be if the file existed, with its `fileStamp`. */
  files: [path: string, stamp: string][];
  settings: CatalogSettings;
  servers: ServerStatus[];
  /** `StatusReport.files`. */
  listed: string[];
  /** Digests of what the plan ran (`SessionFacts.rested`), as JSON, which main does not read. */
  traces: string;
}

/** Variables that say where files of a configuration lie. */
export const PLACE_VARIABLES = [
  ...["XDG_CONFIG_HOME", "APPDATA", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_PLUGIN_CACHE_DIR"],
  ...["CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"],
  ...["npm_config_prefix", "NPM_CONFIG_PREFIX"],
];

/** Where a process looks for files. */
export const restPlace = (env: Readonly<Record<string, string | undefined>>, home: string): string =>
  JSON.stringify([home, ...PLACE_VARIABLES.map((name) => env[name] ?? "")]);
