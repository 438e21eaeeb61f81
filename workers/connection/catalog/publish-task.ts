/** Makes the task of a publication: the servers in their order, each with its description and its tools. Pure. */
import type { CatalogServer, PublishTask } from "../../shared/tasks.ts";
import type { Settings } from "../config/entry/settings.ts";
import { exposedTools, prefixOf } from "../offers/offers.ts";
import type { Server } from "../servers/server.ts";
import { catalogSettings } from "./settings.ts";

const DESCRIPTION_CHARS = 250;
/** For codemode scripts and `tool_search`, which show or rank the whole text. */
const INSTRUCTIONS_CHARS = 4_000;
/** The index reads no more characters of `about`. */
const ABOUT_CHARS = 600;
/** The first line without its heading mark, because a server's instructions may be a Markdown page. */
const firstLine = (text: string | undefined): string | undefined =>
  text
    ?.trim()
    .split("\n", 1)[0]
    ?.replace(/^#+\s*/, "")
    .slice(0, DESCRIPTION_CHARS);

function catalogServer(server: Server, settings: Settings): CatalogServer {
  const instructions = server.instructions?.trim().slice(0, INSTRUCTIONS_CHARS);
  const words = [server.definition.description, server.instructions].filter(Boolean);
  const description = firstLine(words[0]);
  return {
    name: server.name,
    project: server.definition.project,
    toolsKnown: server.tools !== undefined,
    ...(description ? { description } : {}),
    ...(words.length > 0 ? { about: words.join("\n").slice(0, ABOUT_CHARS) } : {}),
    ...(instructions ? { instructions } : {}),
    ...(server.definition.exposePrompts && server.prompts?.length ? { prompts: server.prompts } : {}),
    prefix: prefixOf(server, settings),
    tools: exposedTools(server, settings),
  };
}

/** `configFiles`: the files that the configuration was read from. */
export const publishTask = (
  servers: readonly Server[],
  settings: Settings,
  configFiles: readonly string[],
): PublishTask => ({
  servers: servers.map((server) => catalogServer(server, settings)),
  settings: catalogSettings(settings, configFiles),
});
