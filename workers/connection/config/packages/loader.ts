/**
 * What the rooms of packages share: how one of their files is read, and that its path leads to no file outside of the
 * package. Whoever loads the configuration gives the reading, so that a file that is half-written counts as it was before.
 */
import { realpath } from "node:fs/promises";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { inTime } from "../../../shared/files/file-system.ts";
import { isWithin } from "../../../shared/programs/find-program.ts";
import type { Origin, ServerDefinition } from "../entry/definition.ts";
import type { ConfigDocument, Position } from "../files/document.ts";
import { objectIn, shownKey } from "../files/files.ts";
import type { ConfigFacts, ConfigSource } from "../files/sources.ts";
import type { Format } from "../hosts/format.ts";
import { type Place, parseServers } from "../hosts/hosts.ts";

/** What a text holds. `broken`: nothing of it can be used. */
export interface Read<T> {
  value: T | undefined;
  problems: ConfigProblem[];
  broken: boolean;
}

export interface Loader {
  facts: ConfigFacts;
  /** Undefined value without a problem: there is no such file. `parse` gets the text, or the last text that was whole. */
  read<T>(source: ConfigSource, parse: (text: string) => Read<T>): Promise<Read<T>>;
}

/** A server of a package, and where its definition stands. */
interface Placed {
  server: ServerDefinition;
  place: Place | undefined;
}

export interface ReadPackage {
  servers: Placed[];
  problems: ConfigProblem[];
  /** The files that define servers, or would. */
  files: string[];
  /** There is such a package, or file. */
  isThere: boolean;
}

export interface JsonObject {
  root: Record<string, unknown>;
  document: ConfigDocument;
}

/** Reads an object of JSON. `isIdle`: a text of which nothing is wanted, whose places need not be found. */
export const readObject = (
  loader: Loader,
  source: ConfigSource,
  isIdle: (text: string) => boolean = () => false,
): Promise<Read<JsonObject>> =>
  loader.read(source, (text) => {
    if (isIdle(text)) return { value: undefined, problems: [], broken: false };
    if (text.trim() === "") return { value: undefined, problems: [], broken: true };
    const found = objectIn(text, source);
    return "problem" in found
      ? { value: undefined, problems: [found.problem], broken: true }
      : { value: found, problems: [], broken: false };
  });

/** Whoever uses a package cannot correct it, and all else works: a warning. */
export const packageProblem = (
  file: string,
  { at, path }: { at?: Position | undefined; path?: readonly string[] },
  message: string,
  remedy = "Tell its author, or write the server into your own mcp.json.",
): ConfigProblem => ({
  severity: "warning",
  file,
  ...at,
  ...(path && path.length > 0 && { key: shownKey(path) }),
  message,
  remedy,
});

export const sourceOf = (file: string, origin: Origin): ConfigSource => ({ file, origin, required: false });

/** As names of tools have it: other characters become one `_`, and none is at an end. */
export const plainName = (name: string, otherwise: string): string =>
  name
    .slice(0, 2 * LIMITS.serverNameChars)
    .replace(/[^A-Za-z0-9_-]+/g, "_")
    .replace(/^[_-]+|[_-]+$/g, "") || otherwise;

/** The name of a package's server. */
export const serverNameIn =
  (prefix: string) =>
  (server: string): string =>
    `${prefix}__${plainName(server, "server")}`;

/** The path behind all links; undefined: there is nothing, or its file system does not answer. */
export async function realOf(path: string): Promise<string | undefined> {
  const find = (): Promise<string | undefined> => realpath(path).catch(() => undefined);
  const found = await inTime(`links of ${path}`, find, LIMITS.projectReadMs);
  return "value" in found ? found.value : undefined;
}

/** Whether a path stays in a folder when all links are followed. `folder`: without links. What is not there leads nowhere. */
export async function staysIn(folder: string, path: string): Promise<boolean> {
  const real = await realOf(path);
  return real === undefined || isWithin(real, folder);
}

export const LEADS_OUT = "a link leads out of the package, so it is not used";

/**
 * The servers of one file of a package. `isIn`: whether what a server names lies where it may. `folder`: without links.
 */
export async function readServers(
  folder: string,
  {
    source,
    format,
    isIn,
  }: { source: ConfigSource; format: Format; isIn?: (server: ServerDefinition) => Promise<boolean> },
  loader: Loader,
): Promise<ReadPackage> {
  const { file } = source;
  const files = [file];
  if (!(await staysIn(folder, file)))
    return { servers: [], problems: [packageProblem(file, {}, LEADS_OUT)], files, isThere: true };
  const { value, problems } = await loader.read(source, (text) => {
    const { problems, broken, ...value } = parseServers(text, {
      source,
      facts: loader.facts,
      before: [],
      dialect: format,
    });
    return { value, problems, broken };
  });
  if (!value) return { servers: [], problems, files, isThere: problems.length > 0 };
  const found: ReadPackage = { servers: [], problems: [...problems], files, isThere: true };
  for (const server of value.servers) {
    const place = value.places.get(server);
    if (!isIn || (await isIn(server))) found.servers.push({ server, place });
    else found.problems.push({ ...packageProblem(file, {}, LEADS_OUT), ...place });
  }
  return found;
}
