/**
 * Limits how much of one file is read. The limits of a project's file are closer than those of the user's own: the
 * file comes with a clone, and if Pi asks no question about the folder, nobody had to trust it. Pure.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { isProject, type Origin } from "../entry/definition.ts";
import type { Mistake } from "../entry/mistakes.ts";

export interface FileLimits {
  bytes: number;
  /** Values of the whole text, objects and lists included. */
  values: number;
  /** Entries of servers, overrides included. */
  servers: number;
}

const PROJECT: FileLimits = {
  bytes: LIMITS.projectFileBytes,
  values: LIMITS.projectFileValues,
  servers: LIMITS.serversPerProjectFile,
};

const OWN: FileLimits = {
  bytes: LIMITS.configFileBytes,
  values: LIMITS.configFileValues,
  servers: LIMITS.serversPerFile,
};

export const fileLimits = ({ origin }: { origin: Origin }): FileLimits => (isProject(origin) ? PROJECT : OWN);

/** The mistake of a file with more servers than the limit. `given`: how many the file has. */
export function tooManyServers(source: { origin: Origin }, given: number): Mistake {
  const most = fileLimits(source).servers;
  const count = (servers: number): string => servers.toLocaleString("en");
  const whose = isProject(source.origin) ? "a project's file" : "one file";
  return {
    severity: "error",
    path: [],
    message: `has ${count(given)} servers; the first ${count(most)} of ${whose} are used, the other ${count(given - most)} are left out`,
    remedy: "Remove servers that you do not need.",
  };
}
