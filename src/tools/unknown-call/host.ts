/** What the answer to an undeclared tool's call needs of the session. */
import type { CatalogTool } from "../../catalog/catalog.ts";
import type { ToolHost } from "../tool-search/tool-search.ts";

export interface UnknownCallHost extends Pick<ToolHost, "catalog" | "servers" | "activate" | "whyMissing"> {
  /** The tool of that name, if it was withdrawn while the session was open. */
  withdrawn(name: string): CatalogTool | undefined;
  /** Name of the declared tool through which the model reaches all others. */
  searchTool(): string;
}
