/** Loads every configuration file and merges them: a later file's server replaces an earlier one of its name. */
import type { ConfigProblem } from "../../../src/protocol/types.ts";
import type { ServerDefinition } from "./definition.ts";
import type { ConfigSource } from "./paths.ts";
import { readConfigFile } from "./read.ts";

export interface LoadedConfig {
  servers: ServerDefinition[];
  /** Of all files, a later one's keys last; unchecked. */
  settings: Record<string, unknown>;
  problems: ConfigProblem[];
  files: string[];
}

export async function loadConfig(sources: readonly ConfigSource[]): Promise<LoadedConfig> {
  const results = await Promise.all(sources.map(readConfigFile));
  const servers = new Map<string, ServerDefinition>();
  for (const definition of results.flatMap((result) => result.servers))
    servers.set(definition.name, definition);
  return {
    servers: [...servers.values()],
    settings: Object.assign({}, ...results.map((result) => result.settings)),
    problems: results.flatMap((result) => result.problems),
    files: sources.map((source) => source.file),
  };
}

/** One line for a log or a notice: file, position, key, what is wrong, what to do. */
export function describeProblem(problem: ConfigProblem): string {
  const at = problem.line === undefined ? problem.file : `${problem.file}:${problem.line}:${problem.column}`;
  return `${at}: ${problem.key ? `${problem.key}: ` : ""}${problem.message}. ${problem.remedy}`;
}
