/**
 * What a server offers as tools: its own tools under the configuration's rules (exposed), and tools that read its
 * resources (resource-tools). Must not: talk to servers. Called by: servers, catalog, results, session.
 * To offer something else that servers list, such as prompts: a file here and its list in mcp/.
 */
export { exposedTools, prefixOf } from "./exposed.ts";
export { mergeListed } from "./merge-listed.ts";
export { resourceReader } from "./resource-reader.ts";
export { offeredTools, resourceTools } from "./resource-tools.ts";
