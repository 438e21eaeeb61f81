/** The tools of one server as the panel lists them: what the worker tells of each, joined with what the catalog knows of it. */
import { type Catalog, type CatalogTool, createSlices, eachTool } from "../../catalog/catalog.ts";
import type { ServerDetails } from "../../shared/protocol/panel.ts";
import type { ToolList, ToolRow } from "./model/model.ts";

/** Of a description: enough for a filter. */
const FILTER_CHARS = 300;

/** `at`: the tool's position in `details`. `tool`: absent for a hidden tool, which the catalog does not hold. */
export function toolRow(details: ServerDetails["tools"], at: number, tool: CatalogTool | undefined): ToolRow {
  const key = details.names[at] ?? "";
  const description = tool?.description ?? "";
  return {
    key,
    name: tool?.name,
    description,
    exposure: details.exposures[at] ?? "search",
    place: details.places[details.rules[at] ?? -1],
    text: `${key}\n${description.slice(0, FILTER_CHARS)}`.toLowerCase(),
  };
}

/** In slices: there may be thousands of tools. Undefined if `isOver` came true meanwhile. */
export async function listTools(
  server: string,
  { tools }: ServerDetails,
  catalog: Catalog,
  isOver: () => boolean,
): Promise<ToolList | undefined> {
  const slices = createSlices();
  const known = new Map<string, CatalogTool>();
  for (const tool of eachTool(catalog)) {
    const pause = slices.step();
    if (pause) await pause;
    if (tool.server.name === server) known.set(tool.tool, tool);
  }
  const rows: ToolRow[] = [];
  const at = new Map<string, number>();
  for (let i = 0; i < tools.names.length; i++) {
    const pause = slices.step();
    if (pause) await pause;
    if (isOver()) return undefined;
    const row = toolRow(tools, i, known.get(tools.names[i] ?? ""));
    at.set(row.key, rows.push(row) - 1);
  }
  return isOver() ? undefined : { rows, at };
}
