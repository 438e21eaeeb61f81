/**
 * Where the command works. Owns: Pi's agent folder, the working folder, the configuration file, and whether the project
 * is trusted. Must not: read a configuration. Called by: main, session, commands.
 */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileStamp } from "../../shared/protocol/file-stamp.ts";
import type { SessionFacts } from "../../shared/protocol/session.ts";
import type { SnapshotKey } from "../../shared/snapshot/file-name.ts";
import { EXIT, Failure, usage } from "../console/console.ts";
import { type PiTrust, piTrust } from "./pi-trust.ts";

export { ARGUMENT_BYTES } from "./limits.ts";
export { type Read, readRegular } from "./read-regular.ts";

export interface Place {
  /** Pi's own rule: `$PI_CODING_AGENT_DIR`, else `~/.pi/agent`. */
  agentDir: string;
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
    throw usage(`The current folder is not there any more (${code}).`, "--cwd DIR works in another one.");
  }
}

export function findPlace(options: {
  cwd?: string | undefined;
  config?: string | undefined;
  trustProject: boolean;
}): Place {
  if (options.cwd !== undefined) enter(options.cwd);
  const cwd = currentFolder();
  const agentDir = resolve(process.env.PI_CODING_AGENT_DIR || join(homedir(), ".pi", "agent"));
  const configFile = options.config === undefined ? undefined : resolve(cwd, fromHome(options.config));
  if (configFile !== undefined && !existsSync(configFile)) {
    throw new Failure(EXIT.configuration, `--config ${options.config}: there is no file ${configFile}.`);
  }
  const trust = options.trustProject ? ({ trust: "by-option" } as const) : piTrust(agentDir, cwd);
  return { agentDir, key: { cwd, configFile }, trust };
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

/** A file that cannot be examined gets a stamp that no file has. */
function stampOf(path: string): string {
  try {
    return fileStamp(statSync(path, { throwIfNoEntry: false }));
  } catch {
    return "unreadable";
  }
}

/** What the worker must know. */
export const factsOf = (place: Place): Omit<SessionFacts, "snapshotChecksum"> => ({
  agentDir: place.agentDir,
  cwd: place.key.cwd,
  projectTrusted: isTrusted(place),
  configPath: place.key.configFile,
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
export function leftOutNote({ key: { cwd }, trust }: Place): string | undefined {
  if (trust.trust !== "no") return undefined;
  const files = [".mcp.json", join(".pi", "mcp.json")].filter((file) => existsSync(join(cwd, file)));
  if (files.length === 0) return undefined;
  const which = files.join(" and ");
  return `${which} of this folder ${files.length === 1 ? "is" : "are"} left out: ${trust.reason}. Start Pi here and trust the project, or add --trust-project.`;
}
