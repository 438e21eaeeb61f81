/** What each built file holds and imports, as the last build wrote it down. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = join(import.meta.dirname, "..", "..", "node_modules", ".cache", "build-outputs.json");

export interface BuiltOutput {
  /** Source files, relative to the project. */
  sources: string[];
  /** `path`: an output, relative to the project, or a module of Node. */
  imports: { path: string; kind: string }[];
}

/** Path of an output, relative to the project -> what is in it. */
export const builtOutputs = async (): Promise<Record<string, BuiltOutput>> =>
  JSON.parse(await readFile(FILE, "utf8")) as Record<string, BuiltOutput>;
