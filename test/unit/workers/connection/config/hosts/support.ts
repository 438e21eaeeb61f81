/** Reads files of other programs in memory, and says what they come to, for the tests of this folder. */

import type { HostName } from "../../../../../../src/shared/import-names.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { exposureOf, verdictOn } from "../../../../../../workers/connection/config/entry/exposure.ts";
import type { Settings } from "../../../../../../workers/connection/config/entry/settings.ts";
import type { FileConfig } from "../../../../../../workers/connection/config/files/files.ts";
import type { ConfigFacts } from "../../../../../../workers/connection/config/files/sources.ts";
import { hostSources, parseHostText } from "../../../../../../workers/connection/config/hosts/hosts.ts";
import { type NamedRules, rulesOver } from "../../../../../../workers/connection/config/hosts/named-rules.ts";
import { mergeLayers } from "../../../../../../workers/connection/config/merge/layers.ts";
import { decideTrust } from "../../../../../../workers/connection/config/trust/decide.ts";
import { facts } from "../support.ts";

type Where = "user" | "project" | "last";

/** What the files of a program come to, each at its place, as merging leaves it. */
export function merged(
  host: HostName,
  files: readonly (readonly [Where, string | object])[],
  given: Partial<ConfigFacts> = {},
  ours: readonly FileConfig[] = [],
): { servers: Record<string, ServerDefinition>; problems: string[]; all: ServerDefinition[] } {
  const sources = hostSources(host, facts(given));
  const at: Record<Where, (typeof sources)[number] | undefined> = {
    user: sources[0],
    project: sources.find(({ origin }) => origin === "project-file"),
    last: sources.at(-1),
  };
  const before: ServerDefinition[] = [];
  const problems: string[] = [];
  const rules: NamedRules[] = [];
  for (const [where, content] of files) {
    const source = at[where];
    if (!source) throw new Error(`no file ${where}`);
    const text = typeof content === "string" ? content : JSON.stringify(content);
    const read = parseHostText(text, {
      ...{ host, source, facts: facts(given) },
      before: [...before],
    });
    if (read.rules) rules.push(read.rules);
    before.push(...read.servers);
    problems.push(...read.problems.map(({ message }) => message));
  }
  const over = rulesOver(before, rules);
  const all = mergeLayers({ registered: [], hosts: [before.map(over.apply)], files: ours }).servers;
  problems.push(...over.problems.map(({ message }) => message));
  return { servers: Object.fromEntries(all.map((server) => [server.name, server])), problems, all };
}

/** Those that run before anybody has been asked. */
export const running = (all: readonly ServerDefinition[]): Record<string, ServerDefinition> =>
  Object.fromEntries(
    decideTrust(all, [], { projectTrusted: true, canAsk: true, folder: "/work/app" })
      .allowed.filter(({ enabled }) => enabled)
      .map((server) => [server.name, server]),
  );

export const verdict = (
  server: ServerDefinition | undefined,
  tool: string,
  settings: Settings["approve"] = "never",
  annotations?: Record<string, unknown>,
): string => {
  if (!server) throw new Error("no server");
  return verdictOn({ server: server.name, tool, prefix: "server", annotations }, server, settings);
};

export const shows = (server: ServerDefinition | undefined, ...tools: string[]): string[] => {
  if (!server) throw new Error("no server");
  return tools.filter((tool) => exposureOf(tool, server) !== "hidden");
};
