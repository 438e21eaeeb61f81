/**
 * The contract of the connection worker and the cache worker: the tasks that the connection worker's pool runs on the
 * cache worker's thread, or on its own if they are small, what each task takes and what it answers. Types only. A task
 * never throws: anything wrong becomes a problem, one line for the log, and the session goes on.
 *
 * | task              | takes                       | answers         | runs                                       |
 * |-------------------|-----------------------------|-----------------|--------------------------------------------|
 * | `hashDefinitions` | definitions of servers      | hashes, in order | on the thread if it is large              |
 * | `readLines`       | `CacheQuery`                | `CacheAnswer` or undefined | on the connection worker        |
 * | `readCache`       | `CacheQuery`                | `CacheAnswer`   | on the thread if the file is large         |
 * | `storeEntries`    | `StoreTask`                 | `StoreResult`   | on the thread if either is large, or it runs anyway |
 * | `publishStored`   | `StoredTask`                | `PublishResult` or undefined | on the connection worker      |
 * | `publish`         | `PublishTask`               | `PublishResult` | on the thread                              |
 * | `keepSnapshot`    | `KeepTask`                  | problems        | on the thread if the snapshot is new       |
 */
import type { ToolPrefix } from "../../src/shared/naming.ts";
import type { CatalogSettings } from "../../src/shared/protocol/session.ts";
import type { SnapshotServer } from "../../src/shared/snapshot/contract.ts";
import type { CachedPrompt, CachedTool, ToolList } from "./listed.ts";

/** What a server of the stateless era (MCP 2026-07-28) said of itself, so that it can be called without asking first. */
export interface StoredProtocol {
  /** The revision that it speaks. */
  version: string;
  /** What it can do, for example `tools` and `tools.listChanged`. */
  offers: string[];
  /** Until when its list of tools counts as fresh, in milliseconds since the epoch. */
  freshUntil: number;
}

/** One entry of `mcp-cache.json`: what a server said about itself under one definition. */
export interface CacheEntry {
  /** Hash of the definition that the server was started with. */
  configHash: string;
  /** Tools under the server's own names. */
  tools: CachedTool[];
  /** Resources as the server listed them. Absent: nobody asked, and what is stored stays. */
  resources?: unknown[];
  /** Resource templates, a field of our own. Absent as with `resources`. */
  resourceTemplates?: unknown[];
  /** Prompts. Absent as with `resources`. */
  prompts?: unknown[];
  /** Skills, a field of our own, as the server listed them. Absent: the server serves none, or nobody asked. */
  skills?: unknown[];
  /** Absent: the server gives none. */
  instructions?: string;
  /** A field of our own. Absent: a server of the old era. */
  protocol?: StoredProtocol;
  /** A field of our own: the tools have the signs that their server gave them (signs.ts). */
  signs?: true;
  /** A field of our own: nobody could be asked in the session, and the server may offer less there. Absent: as far as is known, all. */
  unattended?: true;
  /** When the server listed them, in milliseconds since the epoch. */
  cachedAt: number;
}

export interface CacheQuery {
  /** Absolute path of the cache file. */
  path: string;
  /** Definitions as they stand in the configuration, by server. */
  definitions: Record<string, Record<string, unknown>>;
}

/** An entry as it is read: its tools may still be JSON. */
export type KnownEntry = Omit<CacheEntry, "tools"> & { tools: ToolList };

export interface CacheAnswer {
  /** Entries that count now, by server. */
  entries: Record<string, KnownEntry>;
  /** Hashes of the entries whose use is to be written down, by server, for `storeEntries`. */
  used: Record<string, string>;
  problems: string[];
}

export interface SlotChanges {
  /** New entries by server. */
  entries: Record<string, CacheEntry>;
  /** Hashes of entries that a session uses, by server. */
  used: Record<string, string>;
}

export interface StoreTask extends SlotChanges {
  path: string;
}

export interface StoreResult {
  /** False: the caller tries again with its next change. */
  stored: boolean;
  problems: string[];
}

export type PublishedTool = CachedTool & {
  /** Whether the tool is declared to the model from the first request on. */
  direct: boolean;
  /** The words of `searchKeywords` for it, with spaces between: for the index only. Absent: none. */
  keywords?: string;
  /** It reads a resource of the server, or loads a skill. Absent: the server's own tool. */
  kind?: "resource" | "skill";
};

/** A prompt, or a skill as one. `skillTool`: the server's tool that loads the skill. */
export type PromptCommand = CachedPrompt & { skillTool?: string };

export type CatalogServer = Omit<SnapshotServer, "prompts"> & {
  /** As the server listed them, and a command for each skill. Absent: none are known or offered. */
  prompts?: PromptCommand[];
  /** What is known of the server in its own words and the user's, for the index only. */
  about?: string;
  /** How the server's tools are named; `server` if absent. */
  prefix?: ToolPrefix;
  /** Stands for `tools`: equal for equal lists under equal rules. Absent: only the tools themselves tell. */
  listed?: string;
  /** With `listed` they are made at the first access. */
  tools: PublishedTool[];
};

/** The snapshot that main shows, as its file holds it. */
export interface StoredSnapshot {
  path: string;
  checksum: number;
}

export interface PublishTask {
  /** The whole catalog, servers in the order of the configuration. */
  servers: CatalogServer[];
  settings: CatalogSettings;
  /** The snapshot that main has already. */
  stored?: StoredSnapshot;
}

/** What tells whether the stored snapshot still holds. */
export type StoredTask = Omit<PublishTask, "servers"> & {
  servers: readonly (Omit<CatalogServer, "tools"> & { tools?: PublishedTool[] })[];
};

/** A line about a server, without the server's name. */
export interface ServerLine {
  server: string;
  text: string;
}

export interface PublishResult {
  checksum: number;
  /** Absent if the stored snapshot has the same fingerprint: then nothing is made and nothing is sent. */
  snapshot?: Uint8Array<ArrayBuffer>;
  /** What could not be done, one line each, for the log. */
  problems: string[];
  /** What the user should know about the tools' names. */
  notices: ServerLine[];
  /** Repairs of tools' schemas, for the log. */
  repairs: ServerLine[];
  /** Id of the thread that ran the task, for the log. */
  threadId: number;
}

export interface KeepTask {
  /** Absolute path of the snapshot's file. */
  path: string;
  /** Absent: the snapshot is in the file, which existed a moment ago. */
  snapshot?: Uint8Array;
  /** False: the file holds this snapshot already, if the file exists. */
  isNew: boolean;
}
