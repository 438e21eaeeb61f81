/**
 * Where the command works. Owns: Pi's agent folder, the working folder, the configuration file, and whether the project
 * is trusted. Must not: read a configuration.
 */

import { existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { stampOf } from "../../catalog/stamp.ts";
import { refusedLine, serverName } from "../../report/server-name.ts";
import { agentFolder } from "../../shared/process/agent-folder.ts";
import { describeError, messageOf } from "../../shared/protocol/errors.ts";
import type { SessionFacts, StatusReport } from "../../shared/protocol/session.ts";
import { isObject } from "../../shared/protocol/values.ts";
import { onlyServersOf, type SnapshotKey } from "../../shared/snapshot/contract.ts";
import { TRUST_IN_SHELL, unreadFiles } from "../../shared/untrusted.ts";
import { EXIT, Failure, usage } from "../console/failure.ts";
import { readRegular, TRUST_FILE_BYTES } from "./read-regular.ts";

export interface Place {
  agentDir: string;
  /** The folder of the log, if it is another one. */
  logDir?: string;
  /** Names the snapshot, as Pi names it for this folder. */
  key: SnapshotKey;
  trust: PiTrust | { trust: "by-option" };
}

const fromHome = (path: string): string => path.replace(/^~(?=$|[\\/])/, homedir);

/** Changes the working folder of the process, because the worker and `@file` go by it, too. */
function enter(folder: string): void {
  try {
    process.chdir(fromHome(folder));
  } catch (error) {
    throw usage(`--cwd ${folder}: the folder cannot be entered (${(error as NodeJS.ErrnoException).code}).`);
  }
}

function currentFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw usage(`The current folder no longer exists (${code}).`, "--cwd DIR works in another one.");
  }
}

function findAgentFolder(): string {
  try {
    return resolve(agentFolder(process, { homedir, join, fileURLToPath }));
  } catch (error) {
    throw new Failure(EXIT.configuration, `PI_CODING_AGENT_DIR names no folder: ${messageOf(error)}.`, {
      remedy: "Correct it.",
    });
  }
}

export function findPlace(options: {
  cwd?: string | undefined;
  config?: string | undefined;
  trustProject: boolean;
  /** `--mcp-servers`, in place of `MCP_SERVERS`. */
  only?: unknown;
}): Place {
  if (options.cwd !== undefined) enter(options.cwd);
  const cwd = currentFolder();
  const agentDir = findAgentFolder();
  const configFile = options.config === undefined ? undefined : resolve(cwd, fromHome(options.config));
  if (configFile !== undefined && !existsSync(configFile)) {
    throw new Failure(EXIT.configuration, `--config ${options.config}: there is no file ${configFile}.`);
  }
  const trust = options.trustProject ? ({ trust: "by-option" } as const) : piTrust(agentDir, cwd);
  const only = onlyServersOf(options.only ?? process.env.MCP_SERVERS);
  return { agentDir, key: { cwd, configFile, only }, trust };
}

/** For this user alone. Node's recursive `mkdir` never ends in a file system that takes no folder, such as /proc. */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

/** Makes Pi's agent folder, which the worker needs. A folder that this user may not make is left to the worker's errors. */
export function makeAgentFolder(agentDir: string): void {
  try {
    makeFolder(agentDir);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (
      ["EACCES", "EPERM", "EROFS"].includes(code) ||
      statSync(agentDir, { throwIfNoEntry: false })?.isDirectory()
    )
      return;
    throw new Failure(EXIT.configuration, `Pi's agent folder ${agentDir} cannot be made (${code}).`, {
      remedy: "Correct PI_CODING_AGENT_DIR.",
    });
  }
}

export const isTrusted = ({ trust: { trust } }: Place): boolean => trust !== "no";

export const factsOf = (place: Place): Omit<SessionFacts, "snapshotChecksum"> => ({
  agentDir: place.agentDir,
  cwd: place.key.cwd,
  projectTrusted: isTrusted(place),
  configPath: place.key.configFile,
  onlyServers: place.key.only,
  registered: [],
  // In a pipe, too, where every question is declined: a server that may not ask lists other tools, and the list is shared.
  canAsk: true,
  projectFile: stampOf(join(place.key.cwd, ".pi", "mcp.json")),
  startedAtMs: Date.now(),
  onDemand: true,
  // Without Pi's record nothing of the project counts as seen by the person who trusted it: each server is asked for.
  ...(place.trust.trust === "recorded" ? {} : { accepted: { servers: [] } }),
});

/** What the person must know of files that are left out; undefined: nothing is. */
export async function leftOutNote({ key: { cwd }, trust }: Place): Promise<string | undefined> {
  if (trust.trust !== "no") return undefined;
  const files = await unreadFiles({ cwd, projectTrusted: false }, { lstat, resolve });
  if (files.length === 0) return undefined;
  const which = files.join(" and ");
  return `${which} of this folder ${files.length === 1 ? "is" : "are"} left out: ${trust.reason}. ${TRUST_IN_SHELL}`;
}

/** `recorded`: Pi's file says so. `nothing`: nothing in the folder needs trust. `no`: neither, with the reason. */
type PiTrust = { trust: "recorded" | "nothing" } | { trust: "no"; reason: string };

/** Entries of `.pi` that Pi loads only from a trusted project. */
const NEED_TRUST = [
  "settings.json",
  "mcp.json",
  "extensions",
  "skills",
  "prompts",
  "themes",
  "SYSTEM.md",
  "APPEND_SYSTEM.md",
];

const realFolder = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

const samePath = (a: string, b: string): boolean =>
  process.platform === "win32" ? a.toLowerCase() === b.toLowerCase() : a === b;

function* upwards(folder: string): Generator<string> {
  for (let at = folder; ; at = dirname(at)) {
    yield at;
    if (dirname(at) === at) return;
  }
}

function needsTrust(cwd: string): boolean {
  if (NEED_TRUST.some((entry) => existsSync(join(cwd, ".pi", entry)))) return true;
  const own = join(realFolder(process.env.HOME || homedir()), ".agents", "skills");
  for (const folder of upwards(cwd)) {
    const skills = join(folder, ".agents", "skills");
    if (!samePath(skills, own) && existsSync(skills)) return true;
  }
  return false;
}

/** The nearest decision; a reason if the file cannot be used: then nothing counts as trusted. */
function decisionOf(agentDir: string, cwd: string): boolean | undefined | { reason: string } {
  const file = join(agentDir, "trust.json");
  const read = readRegular(file, TRUST_FILE_BYTES);
  if (read === undefined) return undefined;
  if ("problem" in read) return { reason: `${file} ${read.problem}` };
  let data: unknown;
  try {
    data = JSON.parse(read.bytes.toString("utf8").replace(/^\ufeff/, ""));
  } catch {
    return { reason: `${file} is not complete JSON` };
  }
  if (!isObject(data)) return { reason: `${file} is not what Pi writes` };
  const entries = Object.entries(data);
  for (const folder of upwards(cwd)) {
    const found = entries.find(([key, value]) => typeof value === "boolean" && samePath(key, folder));
    if (found) return found[1] === true;
  }
  return undefined;
}

/** `cwd`: a real path. Never throws. */
export function piTrust(agentDir: string, cwd: string): PiTrust {
  const decided = decisionOf(agentDir, realFolder(cwd));
  if (decided === true) return { trust: "recorded" };
  if (decided === false) return { trust: "no", reason: "Pi has recorded that you do not trust this project" };
  if (decided !== undefined) return { trust: "no", reason: decided.reason };
  if (!needsTrust(realFolder(cwd))) return { trust: "nothing" };
  return { trust: "no", reason: "Pi has recorded no trust for this project" };
}

export const HOW_TO_CONSENT =
  "Run the command in a terminal to see what would run and to be asked, or add --yes, which shows and allows it.";

/** A line for each server of the project that may not run yet. */
export const leftOutServers = ({ questions, refused }: StatusReport): string[] => [
  ...questions.map(({ server }) => `${serverName(server)} waits for your consent: ${HOW_TO_CONSENT}`),
  ...refused.map(refusedLine),
];

/** Why a server could not be reached, as its status tells; undefined if it was. */
export function failureOf(report: StatusReport, server: string): string | undefined {
  const found = report.servers.find(({ name }) => name === server);
  return found?.error && describeError(found.error);
}
