/** Makes configuration in memory and on disk for the tests of this folder. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import {
  type DefinitionSource,
  parseEntry,
  type ServerDefinition,
} from "../../../../../workers/connection/config/entry/definition.ts";
import type { ConfigFacts, ConfigSource } from "../../../../../workers/connection/config/files/sources.ts";
import { makeTempFolder, removeFolder } from "../../../../support/temp-folder.ts";

export const USER: ConfigSource = { file: "/home/me/.pi/agent/mcp.json", origin: "user", required: false };
export const PROJECT_FILE: ConfigSource = {
  file: "/work/app/.mcp.json",
  origin: "project-file",
  required: false,
};
export const PROJECT_PI: ConfigSource = {
  file: "/work/app/.pi/mcp.json",
  origin: "project-pi",
  required: false,
};

export function facts(over: Partial<ConfigFacts> = {}): ConfigFacts {
  return {
    agentDir: "/home/me/.pi/agent",
    cwd: "/work/app",
    projectTrusted: true,
    platform: "linux",
    home: "/home/me",
    env: {},
    ...over,
  };
}

/** A definition that must be valid. */
export function definition(name: string, raw: unknown, source: DefinitionSource = USER): ServerDefinition {
  const { file, origin } = source;
  const parsed = parseEntry(name, raw, { file, origin });
  if (!parsed.definition) throw new Error(JSON.stringify(parsed.mistakes));
  return parsed.definition;
}

export const fixture = (name: string): Promise<string> =>
  readFile(join(import.meta.dirname, "../../../../fixtures/config", name), "utf8");

/** A folder that is gone after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await makeTempFolder("pi-mcp-config");
  onTestFinished(() => removeFolder(folder));
  return folder;
}

export async function put(file: string, content: unknown): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
}

/** The same numbers from 0 to 1 in every run (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}
