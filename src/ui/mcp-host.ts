/** The session as `/mcp` sees it. Types only. */
import type { Catalog, CatalogTool } from "../catalog/catalog.ts";
import type { Surroundings } from "../report/doctor.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { WorkerEvent } from "../shared/protocol/contract.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";
import type { createMcpTool } from "../tools/definition.ts";
import type { SignIns } from "./sign-in/sign-in.ts";

/** What ToolSearch would find. */
export interface TriedSearch {
  /** Best first. The scores are comparable within one result only. */
  hits: readonly { tool: CatalogTool; score: number }[];
  /** Number of the first hits that are good enough to be loaded. */
  likely: number;
  tookMs: number;
}

export interface McpHost {
  ask: Runtime["ask"];
  /** Asks the user again about the project's servers that were refused or put off. */
  askConsents(): Promise<void>;
  /** Signs in to a server; without a name to the one that needs it. Resolves when the user has read how it ended. */
  signIn(server: string | undefined): ReturnType<SignIns["byUser"]>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
  /** Ranks the known tools as ToolSearch does. */
  search(query: string, limit: number): Promise<TriedSearch>;
  /** Names in Pi of the tools that are declared to the model now. */
  declared(): readonly string[];
  /** The tool as Pi has it, which the screens do not hold a second time. */
  makeTool: typeof createMcpTool;
  /** What only main knows, for the doctor. */
  surroundings(): Surroundings & { agentDir: string };
  /**
   * Calls the listener after each event of the worker, and with `undefined` when the session has ended. Answers how to
   * stop that.
   */
  onChange(listener: (event: WorkerEvent | undefined) => void): () => void;
}
