/** A call of ToolSearch in Pi: what the search answers, the servers' own words, and the skills that were selected. */
import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import type { NestedOutcome, ToolResult } from "../pi/api.ts";
import { findTools } from "../report/tool-search.ts";
import { ownersOf } from "./branch.ts";
import type { ToolHost } from "./host.ts";
import type { ReadBranch } from "./told.ts";

/** Skills that one answer loads: each may ask the person, and brings a text of many tokens. */
const SKILLS = 3;

/** Calls the tool of a skill through Pi, so that extensions that watch or block calls see the tool itself. */
export type LoadSkill = (tool: CatalogTool) => Promise<Pick<NestedOutcome, "result">>;

/** The texts of the skills that were selected by name: who selects a skill wants its instructions. */
async function loadedSkills(tools: readonly CatalogTool[], load: LoadSkill): Promise<ToolResult["content"]> {
  const skills = tools.filter((tool) => tool.kind === "skill" && inputSchemaOf(tool).required === undefined);
  const content: ToolResult["content"] = [];
  for (const skill of skills.slice(0, SKILLS)) content.push(...(await load(skill)).result.content);
  return content;
}

export async function runToolSearch(
  host: ToolHost,
  params: Record<string, unknown>,
  { signal, branch, load }: { signal: AbortSignal | undefined; branch: ReadBranch; load: LoadSkill },
): Promise<ToolResult> {
  const { text, loaded, isSelect } = await findTools(host, params, signal);
  const servers = [...new Set(loaded.map((tool) => tool.server.name))];
  const told = await host.tell(servers, branch);
  return {
    content: [
      ...[text, ...(told ? [told.text] : [])].map((part) => ({ type: "text" as const, text: part })),
      ...(isSelect ? await loadedSkills(loaded, load) : []),
    ],
    details: {
      loaded: loaded.map(({ name }) => name),
      owners: ownersOf(loaded),
      ...(told ? { instructed: told.servers } : {}),
    },
  };
}
