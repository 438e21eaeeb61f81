/**
 * The paths of our configuration files and of the files that we write. Pure: home, platform and environment are
 * given.
 */

import { isUtf8 } from "node:buffer";
import { lstat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { RegisteredServer } from "../../../../src/shared/protocol/session.ts";
import { inTime, silenceOf } from "../../../shared/files/file-system.ts";
import { readRegular, remedyForUnread, whyUnread } from "../../../shared/files/read-regular.ts";
import { createGate } from "../../../shared/pace/pace.ts";
import type { Base, Origin } from "../entry/definition.ts";
import { expandHome, pathsOf } from "../entry/interpolate.ts";
import { wayTo } from "./path-stops.ts";

/** Everything that decides which files are read. */
export interface ConfigFacts {
  agentDir: string;
  cwd: string;
  /** `ctx.isProjectTrusted()`: without it no file of the project is read. */
  projectTrusted: boolean;
  /** `--mcp-config`: read in place of `<agentDir>/mcp.json`. */
  configPath?: string | undefined;
  /** Root of the Git worktree around `cwd`, if there is one and a host looks for files up to it. */
  worktree?: string | undefined;
  /** Root of the repository to which this worktree is linked; absent: the worktree is the repository's own. */
  repository?: string | undefined;
  /** Folders above `cwd` whose `.mcp.json` counts too, the outermost first. */
  ancestors?: readonly string[] | undefined;
  /** Where the policy of this machine is. Absent: it has none. */
  policyFile?: string | undefined;
  /** The session has these servers alone. */
  onlyServers?: readonly string[] | undefined;
  /** `pi.getMcpServers()`. */
  registered?: readonly RegisteredServer[] | undefined;
  platform: NodeJS.Platform;
  home: string;
  env: Readonly<Record<string, string | undefined>>;
}

export interface ConfigSource {
  file: string;
  origin: Origin;
  base?: Base | undefined;
  /** The user named this very file, so that it must exist. */
  required: boolean;
}

/** Our own files, lowest precedence first. */
export function configSources(facts: Omit<ConfigFacts, "env" | "registered">): ConfigSource[] {
  const paths = pathsOf(facts.platform);
  const { configPath, cwd } = facts;
  const user: ConfigSource =
    configPath === undefined
      ? { file: paths.join(facts.agentDir, "mcp.json"), origin: "user", required: false }
      : { file: paths.resolve(cwd, expandHome(configPath, facts)), origin: "user", required: true };
  const shared = [
    [".config", "mcp", "mcp.json"],
    [".agents", "mcp.json"],
    [".agents", "mcp", "mcp.json"],
  ].map((path) => ({ file: paths.join(facts.home, ...path), origin: "user" as const, required: false }));
  const above = (facts.ancestors ?? []).map(
    (folder): ConfigSource => ({
      file: paths.join(folder, ".mcp.json"),
      origin: "project-file",
      required: false,
      base: { folder },
    }),
  );
  const project: ConfigSource[] = [
    ...above,
    { file: paths.join(cwd, ".mcp.json"), origin: "project-file", required: false },
    { file: paths.join(cwd, ".pi", "mcp.json"), origin: "project-pi", required: false },
  ];
  return [
    ...shared.filter(({ file }) => file !== user.file),
    user,
    // A project's file that the user named by --mcp-config counts as the user's own.
    ...(facts.projectTrusted ? project.filter(({ file }) => file !== user.file) : []),
  ];
}

/** The working folder and those above it up to the worktree's root, the outermost first. */
export function foldersUp({
  cwd,
  worktree,
  platform,
}: Pick<ConfigFacts, "cwd" | "worktree" | "platform">): string[] {
  const folders = [cwd];
  for (let folder = cwd; worktree !== undefined && folder !== worktree; ) {
    const parent = pathsOf(platform).dirname(folder);
    // The worktree is not above the folder.
    if (parent === folder) return [cwd];
    folders.unshift(parent);
    folder = parent;
  }
  return folders;
}

/** Packages of one list of Pi's or Claude Code's, and plugins of one file. */
export const PACKAGES = 100;
/** Files of servers that one package names. */
export const PACKAGE_SERVER_FILES = 10;
/** Files of all packages and plugins together, which are read at each load, and watched. */
export const PACKAGE_FILES = 500;
/** Folders above the session's that may have a `.mcp.json`. */
export const FOLDERS_ABOVE = 20;

/**
 * The policy of this machine. No variable and no option moves it. On Windows below Program Files, where only administrators
 * write; anybody can make a folder below ProgramData.
 */
const POLICY_FILES: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  darwin: "/Library/Application Support/pi-mcp-threads/policy.json",
  win32: "C:\\Program Files\\pi-mcp-threads\\policy.json",
};

export const policyFile = (platform: NodeJS.Platform): string =>
  POLICY_FILES[platform] ?? "/etc/pi-mcp-threads/policy.json";

export const cacheFile = (agentDir: string): string => join(agentDir, "mcp-cache.json");

export const npxCacheFile = (agentDir: string): string => join(agentDir, "mcp-npx-cache.json");
/** As trusted as the project. */
export const projectPiFile = (cwd: string): string => join(cwd, ".pi", "mcp.json");

export const trustFile = (agentDir: string): string => join(agentDir, "mcp-trust.json");

export type FileText =
  | { kind: "missing" }
  /**
   * `later`: the file system has not answered yet; settles when it has. `isSkipped`: nobody has looked at the file, since others do
   * not answer.
   */
  | { kind: "unreadable"; reason: string; remedy: string; later?: Promise<void>; isSkipped?: true }
  /** `isForeign`: bytes that are not UTF-8 are lost in the text, so that it must not be written back. */
  | { kind: "text"; text: string; isForeign?: true };

/**
 * Reads the text of a file, or says why that is not possible. A file larger than `limitBytes` is not read. Never
 * throws.
 */
export type ReadFile = (file: string, limitBytes: number) => Promise<FileText>;

export const NO_ANSWER = "its file system does not answer";

const unanswered = (later: Promise<void>) => ({
  kind: "unreadable" as const,
  reason: NO_ANSWER,
  remedy: "It is used as soon as it answers. Delete it if it leads to a machine that does not.",
  later,
});

/** Each file that never answers holds one of the four threads that Pi's process has for files. */
export const MOST_SILENT = 2;
const places = createGate(MOST_SILENT);
/** Reads without an answer; each keeps its place. */
const silences = new Set<Promise<void>>();
/** Fires when these have all places, so that nobody waits for one. */
let full = new AbortController();
/** Settles when one of these reads has its answer, once they have all places. */
let firstAnswer: Promise<void> = Promise.resolve();

/** Reads the text of a project's file, which must keep neither the user's own servers nor Pi's files waiting. Never throws. */
export async function readInTime(
  file: string,
  limitBytes: number,
  read: ReadFile = readText,
): Promise<FileText> {
  const overdue = silenceOf(file);
  if (overdue) return unanswered(overdue);
  const leave = await places.enter(full.signal);
  if (full.signal.aborted) {
    leave();
    return { ...unanswered(firstAnswer), isSkipped: true };
  }
  // Another read of the file may have got no answer while this one waited for its place.
  const since = silenceOf(file);
  if (since) {
    leave();
    return unanswered(since);
  }
  const found = await inTime(file, () => read(file, limitBytes), LIMITS.projectReadMs);
  if ("value" in found) {
    leave();
    return found.value;
  }
  const { silent } = found;
  silences.add(silent);
  if (silences.size === MOST_SILENT) {
    firstAnswer = Promise.race(silences);
    full.abort();
  }
  void silent.then(() => {
    silences.delete(silent);
    if (full.signal.aborted) full = new AbortController();
    leave();
  });
  return unanswered(silent);
}

/** Gives the text with its BOM. Never throws. A file that is not regular or may not be read is `unreadable`. */
export async function readText(file: string, limitBytes: number = LIMITS.configFileBytes): Promise<FileText> {
  const silent = silenceOf(file);
  if (silent) return unanswered(silent);
  const read = await readRegular(file, limitBytes);
  if (read.kind === "missing") return read;
  if (read.kind === "bytes") {
    const text = read.bytes.toString("utf8");
    return isUtf8(read.bytes) ? { kind: "text", text } : { kind: "text", text, isForeign: true };
  }
  return { kind: "unreadable", reason: whyUnread(read), remedy: remedyForUnread(read) };
}

/** The nearest folder, from `folder` upwards, that holds `.git`, which in a linked worktree is a file. */
export async function findWorktree(folder: string): Promise<string | undefined> {
  const found = await lstat(join(folder, ".git")).then(
    () => true,
    () => false,
  );
  if (found) return folder;
  const parent = dirname(folder);
  return parent === folder ? undefined : findWorktree(parent);
}

/** The files by which a linked worktree and its repository name each other hold one path. */
const GIT_FILE_BYTES = 8_192;

/**
 * The root of the repository to which a worktree is linked; undefined: it is linked to none. A `.git` file can name any
 * repository, so that one counts that names the worktree in return; and none on another machine, which would be asked.
 */
async function findRepository(worktree: string, platform: NodeJS.Platform): Promise<string | undefined> {
  const file = join(worktree, ".git");
  const readHere = async (path: string): Promise<FileText> =>
    // Windows signs in to a machine to which a link leads.
    (await wayTo(path, platform)).isRemote ? { kind: "missing" } : readInTime(path, GIT_FILE_BYTES);
  const read = await readHere(file);
  const named = read.kind === "text" ? /^gitdir: (.+)$/m.exec(read.text)?.[1]?.trim() : undefined;
  if (named === undefined || /^[/\\]{2}/.test(named)) return undefined;
  const link = resolve(worktree, named);
  const own = dirname(dirname(link));
  if (basename(dirname(link)) !== "worktrees" || basename(own) !== ".git") return undefined;
  const back = await readHere(join(link, "gitdir"));
  return back.kind === "text" && resolve(link, back.text.trim()) === file ? dirname(own) : undefined;
}

/** The worktree around a folder, and its repository. */
export async function findWorkspace(
  folder: string,
  platform: NodeJS.Platform = process.platform,
): Promise<Pick<ConfigFacts, "worktree" | "repository">> {
  const worktree = await findWorktree(folder);
  return {
    worktree,
    repository: worktree === undefined ? undefined : await findRepository(worktree, platform),
  };
}
