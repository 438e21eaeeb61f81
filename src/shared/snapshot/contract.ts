/** What a snapshot holds, as it is written and as it is read. Types only. */
import type { CatalogSettings, ToolAnnotations } from "../protocol/catalog.ts";
import type { RootKey } from "./root-keys.ts";

export interface SnapshotServer {
  name: string;
  /** What the server is for, in a line; from the configuration or the server's own words. */
  description?: string;
  /** The server's own words on how to use it, bounded. */
  instructions?: string;
  /** Whether the server, or a cache, has told its tools; otherwise it is only configured. */
  toolsKnown: boolean;
  /** Defined by a file of the project, so it counts only while the project is trusted. */
  project: boolean;
}

interface DescribedTool {
  /** Name in Pi. */
  name: string;
  /** Name at the server, as the server wrote it. */
  tool: string;
  description: string;
  annotations?: ToolAnnotations;
  /** Declared to the model from the first request on, without a search. */
  direct?: boolean;
  /** Its name has no server in it: a tool of another extension may bear it too. */
  bare?: boolean;
}

/** A tool as it is written. */
export interface SnapshotTool extends DescribedTool {
  /** Index into `servers`. */
  server: number;
  /** Of the input schema, so that the schema can be decoded on first access. */
  rootKeys: readonly RootKey[];
  /** msgpackr bytes of the input schema: always an object whose `type` is `object`. */
  schema: Uint8Array;
  /** msgpackr bytes of the output schema, with references that start at `STRUCTURED_POINTER`. */
  outputSchema?: Uint8Array;
}

/** The schemas of all tools of a snapshot, by position, read on demand: a view a tool costs more than all else. */
export interface StoredSchemas {
  /** Of the input schema. Tools of equal roots share one list. */
  rootKeys(at: number): readonly RootKey[];
  input(at: number): Uint8Array;
  /** Undefined for a tool without one. */
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
  /** Of the tool that finds the others, which names the servers and their tools. */
  description: string;
  servers: SnapshotServer[];
  /** Bytes of the search index over the tools, by position. */
  index: Uint8Array;
}

/** A snapshot as it is written. */
export interface Snapshot extends SnapshotHead {
  tools: SnapshotTool[];
}

/** A snapshot as it is read: a tool is made when somebody asks for it, since there may be thousands. */
export interface OpenSnapshot extends SnapshotHead {
  /** Number of tools. */
  count: number;
  /** The same object each time. */
  tool(at: number): StoredTool;
  /** Position of the tool of that name in Pi, or -1. */
  find(name: string): number;
}
