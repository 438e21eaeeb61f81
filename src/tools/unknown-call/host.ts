/** The part of the session that the answer to an unknown call needs. */
import type { CatalogTool } from "../../catalog/catalog.ts";
import type { ToolHost } from "../tool-search/tool-search.ts";

export interface UnknownCallHost extends Pick<ToolHost, "catalog" | "servers" | "activate" | "whyMissing"> {
  /** The tool of that name, if the session has withdrawn it. */
  withdrawn(name: string): CatalogTool | undefined;
  /** Name of the declared tool through which the model reaches all others. */
  searchTool(): string;
}
