/**
 * Owns: the servers that other programs have configured, whether they are imported or not, for the person who chooses
 * among them. Reads each program's files as an import would. Must not: write, decide, or show a secret.
 */
import { createHash } from "node:crypto";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { canonical } from "../../../shared/json.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { HOSTS, type HostName } from "../entry/schema.ts";
import { addAll, brokenFile, fileLimits } from "../files/files.ts";
import { type ConfigFacts, type ConfigSource, findWorktree, readText } from "../files/sources.ts";
import { hostSources, looksUp, parseHostText } from "../hosts/hosts.ts";

export interface HostFileFound {
  source: ConfigSource;
  /** Those that count for the program: a later file of it may replace a server. */
  servers: ServerDefinition[];
}

export interface HostFound {
  host: HostName;
  /** Files that exist. */
  files: HostFileFound[];
  problems: ConfigProblem[];
}

/** Never throws. Answers undefined if none of the files exists. */
async function findHost(host: HostName, facts: ConfigFacts): Promise<HostFound | undefined> {
  const found: HostFound = { host, files: [], problems: [] };
  const before: ServerDefinition[] = [];
  const sources = hostSources(host, facts);
  const texts = await Promise.all(sources.map((source) => readText(source.file, fileLimits(source).bytes)));
  for (const [i, source] of sources.entries()) {
    const read = texts[i];
    if (!read || read.kind === "missing") continue;
    if (read.kind === "unreadable") {
      const { reason, remedy } = read;
      const message = `cannot be read: ${reason}`;
      const broken = brokenFile(source, { severity: "warning", line: 1, column: 1, message, remedy });
      addAll(found.problems, broken.problems);
      found.files.push({ source, servers: [] });
      continue;
    }
    const { servers, problems } = parseHostText(read.text, { host, source, facts, before: [...before] });
    addAll(before, servers);
    addAll(found.problems, problems);
    found.files.push({ source, servers });
  }
  if (found.files.length === 0) return undefined;
  const counting = new Set(new Map(before.map((server) => [server.name, server])).values());
  const files = found.files.map(({ source, servers }) => ({
    source,
    servers: servers.filter((server) => counting.has(server)),
  }));
  return { ...found, files };
}

/** All programs of which a file exists. Never throws. */
export async function findHosts(given: ConfigFacts): Promise<HostFound[]> {
  const facts = { ...given, worktree: HOSTS.some(looksUp) ? await findWorktree(given.cwd) : undefined };
  const found = await Promise.all(HOSTS.map((host) => findHost(host, facts)));
  return found.filter((one) => one !== undefined);
}

/** A hash of a server as it was found: the file, the name, and all that the file says of it. */
export const foundId = ({ file, name, raw, origin }: ServerDefinition): string =>
  createHash("sha256").update(canonical({ file, name, raw, origin })).digest("hex");
