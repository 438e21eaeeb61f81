/** What a server offers as the rules of the configuration let it be seen: which tools, and how they are named. Pure. */
import type { ToolPrefix } from "../../../src/shared/naming/names.ts";
import type { PublishedTool } from "../../cache/snapshot/make.ts";
import { exposureOf, namesInRules } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { Server } from "../servers/server.ts";
import { offeredTools } from "./offers.ts";

export const prefixOf = (server: Server, settings: Settings): ToolPrefix =>
  server.definition.toolPrefix ?? settings.toolPrefix;

/** What becomes of each tool under the rules of its server: hidden ones are left out, direct ones marked. */
export function exposedTools(server: Server, settings: Settings): PublishedTool[] {
  const prefix = prefixOf(server, settings);
  return offeredTools(server).flatMap((tool) => {
    const names = namesInRules(server.name, tool.name, prefix);
    const exposure = exposureOf(tool.name, server.definition, settings.directTools, names);
    return exposure === "hidden" ? [] : [{ ...tool, direct: exposure === "direct" }];
  });
}
