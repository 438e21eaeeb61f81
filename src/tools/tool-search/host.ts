/** What the tools that find and call others need of the session. One object serves them all; each takes its part. */
import type { Catalog, CatalogTool } from "../../catalog/catalog.ts";
import type { WhyMissing } from "../../report/search.ts";
import type { ConnectionMethods } from "../../shared/protocol/api.ts";
import type { ServerStatus } from "../../shared/protocol/status.ts";
import type { Activation } from "../registry/registry.ts";

export interface ToolHost {
  /**
   * Waits, within limits, until all servers, or the named ones, have told their tools. Answers the servers that are
   * still connecting.
   */
  settle(signal: AbortSignal | undefined, servers?: string[]): Promise<string[]>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
  /** Declares tools to the model from the next request on. */
  activate(tools: readonly CatalogTool[]): Activation;
  /** Lets other tools call this one, without declaring it. Answers the tool as Pi knows it. */
  provide(tool: CatalogTool): CatalogTool;
  /** While the task runs, results of the calls that the tool call `callId` makes are shaped for the model, not for a script. */
  forModel<T>(callId: string, task: () => Promise<T>): Promise<T>;
  /** Matches a regular expression off main, where a slow one holds nobody up. */
  matchTools(
    params: ConnectionMethods["matchTools"]["params"],
  ): Promise<ConnectionMethods["matchTools"]["value"]>;
  /** Settles when the server has connected or failed. */
  connect(server: string): Promise<void>;
  log(message: string): void;
  whyMissing: WhyMissing;
}

export type ToolSearchHost = Pick<
  ToolHost,
  "settle" | "catalog" | "servers" | "activate" | "log" | "whyMissing"
>;
