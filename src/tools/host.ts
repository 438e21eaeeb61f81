/** The session as the tools see it that find and call other tools. One object serves them all; each takes its part. */
import type { CatalogTool } from "../catalog/catalog.ts";
import type { SearchHost } from "../report/tool-search.ts";
import type { ConnectionMethods } from "../shared/protocol/contract.ts";
import type { Instructions } from "./told.ts";

export interface ToolHost extends SearchHost {
  /** Lets other tools call this tool, without declaring it. Answers the tool under its name in Pi. */
  provide(tool: CatalogTool): CatalogTool;
  /** While the task runs, the nested calls of the tool call `callId` get results for the model, not for a script. */
  forModel<T>(callId: string, task: () => Promise<T>): Promise<T>;
  /** Matches a regular expression in the worker, where a slow one does not block Pi. */
  matchTools(
    params: ConnectionMethods["matchTools"]["params"],
  ): Promise<ConnectionMethods["matchTools"]["value"]>;
  /** Settles when the server has connected or failed. */
  connect(server: string, signal: AbortSignal | undefined): Promise<void>;
  /** Answers what servers say about their use, as far as the model has not read it yet. */
  tell: Instructions["tell"];
}

export interface UnknownCallHost extends Pick<ToolHost, "catalog" | "servers" | "activate" | "whyMissing"> {
  /** The tool of that name, if the session has withdrawn it. */
  withdrawn(name: string): CatalogTool | undefined;
  /** Tells the person, who sees only Pi's own words about the call. */
  tell(text: string): void;
  /** Name of the declared tool through which the model reaches all others; undefined if the model does not have it. */
  searchTool(): string | undefined;
}
