/** What a server offers under the rules of the configuration: which tools, and how they are named. Pure. */
import type { ToolPrefix } from "../../../src/shared/naming/names.ts";
import type { CachedResources } from "../../shared/listed/resource.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import type { PublishedTool } from "../../shared/tasks.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { exposureOf, namesInRules } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { Redactor } from "../secrets/redact.ts";
import { offeredTools } from "./resource-tools.ts";

/** A server as this folder sees it. */
export interface Offering {
  name: string;
  definition: ServerDefinition;
  /** Undefined until a list came from the server or the cache. */
  tools: CachedTool[] | undefined;
  resources: CachedResources | undefined;
  /** Whether the rules hide the tool. `tool`: the server's name of it. */
  excludes(tool: string): boolean;
  redact: Redactor;
}

export const prefixOf = (server: Offering, settings: Settings): ToolPrefix =>
  server.definition.toolPrefix ?? settings.toolPrefix;

/** The tools that the rules let through: hidden ones are left out, direct ones are marked. */
export function exposedTools(server: Offering, settings: Settings): PublishedTool[] {
  const prefix = prefixOf(server, settings);
  return offeredTools(server).flatMap((tool) => {
    const names = namesInRules(server.name, tool.name, prefix);
    const exposure = exposureOf(tool.name, server.definition, settings.directTools, names);
    return exposure === "hidden" ? [] : [{ ...tool, direct: exposure === "direct" }];
  });
}
