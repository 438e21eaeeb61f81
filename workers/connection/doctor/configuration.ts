/**
 * What the files say: their mistakes, those that cannot be read, and servers of the project that may not run. And whether
 * the extension's own files can be written, and whether only the user can read them.
 */

import { lstat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Finding } from "../../../src/shared/protocol/person.ts";
import type { ConfigProblem, StatusReport } from "../../../src/shared/protocol/session.ts";
import {
  LOG_FILE,
  SIGN_IN_FOLDER,
  SNAPSHOT_FOLDER,
  TRACE_FILE,
} from "../../../src/shared/snapshot/contract.ts";
import { counted, formatBytes } from "../../../src/shared/text/amounts.ts";
import { unreadFiles } from "../../../src/shared/untrusted.ts";
import { advice, commandFor } from "../../shared/commands.ts";
import type { ConfigState } from "../config/config.ts";
import { allWell, type DoctorInput, FILES_LOOKED_AT } from "./check.ts";
import type { LookedAt, Machine } from "./machine.ts";

const ofProblem = ({ severity, file, line, key, message, remedy }: ConfigProblem): Finding => ({
  id: "config",
  severity,
  title: `${key === undefined ? "" : `${key}: `}${message}${message.endsWith("?") ? "" : "."}`,
  remedy,
  file,
  ...(line === undefined ? {} : { line }),
});

const ofQuestion = ({ server }: StatusReport["questions"][number]): Finding => ({
  id: "consent",
  severity: "warning",
  server,
  title: "A file that is not your own names the server, and it waits for your consent.",
  remedy: advice("consentShows"),
});

const ofRefusal = ({ name, reason, byPolicy }: StatusReport["refused"][number]): Finding => ({
  id: "consent",
  severity: "note",
  server: name,
  title: `The server is not started: ${reason}.`,
  remedy: byPolicy ? "Only your administrator can allow it." : advice("refused"),
});

/** Whether anything is known of the file on the disk. */
interface LookedFile {
  file: string;
  isThere: boolean;
}

/** `files`: in order of precedence. */
export function judgeConfiguration(
  { problems, questions, refused }: Omit<StatusReport, "servers" | "files">,
  files: readonly LookedFile[],
): Finding[] {
  const there = files.filter(({ isThere }) => isThere).map(({ file }) => file);
  const missing = files.filter(({ isThere }) => !isThere).map(({ file }) => file);
  const read: Finding =
    there.length === 0
      ? {
          id: "config",
          severity: "note",
          title: "No configuration file exists yet.",
          detail: `Looked for ${missing.join(", ")}.`,
          remedy: `${commandFor("add")}, or write the servers into the second of these files.`,
        }
      : {
          ...allWell("config", `${counted(there.length, "configuration file")} read.`),
          detail: `Read: ${there.join(", ")}.${missing.length > 0 ? ` Not there: ${missing.join(", ")}.` : ""}`,
        };
  return [...problems.map(ofProblem), ...questions.map(ofQuestion), ...refused.map(ofRefusal), read];
}

/** Whether a problem is about the server: its key is `mcpServers.<name>...`, or it concerns the whole file. */
function concerns({ key, severity }: ConfigProblem, server: string): boolean {
  if (key === undefined) return severity === "error";
  const below = /^mcp-?servers\.(.*)$/is.exec(key)?.[1];
  return below === server || below?.startsWith(`${server}.`) === true;
}

/** The state without what is about other servers. */
function about({ problems, questions, refused }: ConfigState, server: string): Omit<ConfigState, "files"> {
  return {
    problems: problems.filter((problem) => concerns(problem, server)),
    questions: questions.filter((question) => question.server === server),
    refused: refused.filter(({ name }) => name === server),
  };
}

/** Whether the files name a server of that name, although it may not run. */
export function isMentioned(state: ConfigState, server: string): boolean {
  const { problems, questions, refused } = about(state, server);
  return problems.length + questions.length + refused.length > 0;
}

/** A folder that Pi does not trust has servers. */
async function checkTrust({ facts, named }: DoctorInput): Promise<Finding[]> {
  const names = named === undefined ? await unreadFiles(facts, { lstat, resolve }) : [];
  if (names.length === 0) return [];
  return [
    {
      id: "consent",
      severity: "warning",
      title: `This folder is not trusted, so the servers of ${names.join(" and ")} are not read.`,
      remedy: advice("trustFolder"),
    },
  ];
}

export async function checkConfiguration(input: DoctorInput): Promise<Finding[]> {
  const { state, named, machine } = input;
  const files = await Promise.all(
    state.files
      .filter((file) => isAbsolute(file))
      .map(async (file) => ({ file, isThere: (await machine.kindOf(file)) !== "missing" })),
  );
  return [
    ...(await checkTrust(input)),
    ...judgeConfiguration(named === undefined ? state : about(state, named), files),
  ];
}

/** Less is too little for the caches of the extension and for npm. */
const LEAST_FREE_BYTES = 100 * 1024 * 1024;
const FOR_OTHERS = 0o077;
const FILES_NAMED = 5;

const WHY: ReadonlyMap<string, [title: string, remedy: string]> = new Map([
  ["ENOSPC", ["the disk is full", "Make room on the disk."]],
  ["EDQUOT", ["your share of the disk is used up", "Make room on the disk."]],
  ["EROFS", ["the file system is read-only", "Set PI_CODING_AGENT_DIR to a folder that can be written."]],
  ["EACCES", ["you have no right to it", "Give yourself the right to write there, with chown or chmod."]],
  ["EPERM", ["you have no right to it", "Give yourself the right to write there, with chown or chmod."]],
  ["ENOENT", ["there is no such folder", "Make the folder."]],
]);

/** `code`: of the system's error when a file was to be written into the folder; undefined: it was written. */
export function judgeFolder(
  folder: string,
  code: string | undefined,
  freeBytes: number | undefined,
): Finding | undefined {
  const about = { id: "disk", file: folder } as const;
  if (code !== undefined) {
    const [why, remedy] = WHY.get(code) ?? [`the system answers ${code}`, "Check the folder and the disk."];
    return {
      ...about,
      severity: "error",
      title: `Nothing can be written into the extension's folder: ${why}.`,
      detail:
        "Without it, tools are listed again at each start, and sign-ins and answers are not remembered.",
      remedy,
    };
  }
  if (freeBytes === undefined || freeBytes >= LEAST_FREE_BYTES) return undefined;
  return {
    ...about,
    severity: "warning",
    title: `Only ${formatBytes(freeBytes)} are free on the disk.`,
    remedy: "Make room on the disk.",
  };
}

/** `files`: path and what is there, of files that only the user should read. */
export function judgeModes(
  files: readonly { path: string; found: LookedAt | undefined }[],
): Finding | undefined {
  const open = files.filter(({ found }) => found && (found.mode & FOR_OTHERS) !== 0).map(({ path }) => path);
  if (open.length === 0) return undefined;
  const more = open.length > FILES_NAMED ? ` and ${open.length - FILES_NAMED} more` : "";
  return {
    id: "file-modes",
    severity: "warning",
    title: `Others on this machine can read what only you should: ${open.slice(0, FILES_NAMED).join(", ")}${more}.`,
    remedy:
      "chmod 600 for the files and 700 for the folders makes them private. Where the file system refuses chmod, set PI_CODING_AGENT_DIR to a folder of another one.",
  };
}

export function judgeLog(file: string, found: LookedAt | undefined): Finding | undefined {
  if (!found) return undefined;
  const about = { id: "log", severity: "warning", file } as const;
  if (found.kind !== "file") {
    return {
      ...about,
      title: "The log is not a regular file, so nothing is written.",
      remedy: "Remove it; the next line makes a new file.",
    };
  }
  if (found.canWrite === false) {
    return {
      ...about,
      title: "The log cannot be written.",
      remedy: "Give yourself the right to write it, or remove it.",
    };
  }
  if (found.size <= 2 * LIMITS.logBytes) return undefined;
  return {
    ...about,
    title: `The log has ${formatBytes(found.size)}: it is not rotated.`,
    remedy: "Remove it; the folder may forbid a rename.",
  };
}

/** Where the messages of servers with `"trace": true` are. */
function tellTrace({ agentDir, servers }: DoctorInput): Finding | undefined {
  const traced = servers.filter(({ definition }) => definition.trace).map(({ name }) => name);
  if (traced.length === 0) return undefined;
  return {
    id: "log",
    severity: "note",
    title: `The messages of ${traced.slice(0, FILES_NAMED).join(", ")} are traced, without what they hold.`,
    remedy: 'Take "trace" out of the entry when you have what you need.',
    file: join(agentDir, TRACE_FILE),
  };
}

/** Files below the folder of sign-ins, and the folders themselves. */
async function signInFiles(folder: string, machine: Machine): Promise<string[]> {
  const servers = (await machine.list(folder)).slice(0, FILES_LOOKED_AT).map((name) => join(folder, name));
  const files = await Promise.all(
    servers.map(async (server) => (await machine.list(server)).map((name) => join(server, name))),
  );
  return [...servers, ...files.flat()].slice(0, FILES_LOOKED_AT);
}

const OWN_FILES = ["mcp-trust.json", "mcp-cache.json", LOG_FILE, TRACE_FILE];

export async function checkPlace(input: DoctorInput): Promise<Finding[]> {
  const { agentDir, machine } = input;
  const snapshots = join(agentDir, SNAPSHOT_FOLDER);
  const hasSnapshots = (await machine.kindOf(snapshots)) === "folder";
  const folder = hasSnapshots ? snapshots : agentDir;
  const logFile = join(agentDir, LOG_FILE);
  const look = async (path: string) => ({ path, found: await machine.lookAt(path) });
  const [code, freeBytes, log, signIns] = await Promise.all([
    machine.tryToWrite(folder),
    machine.freeBytes(folder),
    machine.lookAt(logFile),
    machine.platform === "win32" ? [] : signInFiles(join(agentDir, SIGN_IN_FOLDER), machine),
  ]);
  const isPosix = machine.platform !== "win32";
  const own = isPosix ? [...OWN_FILES.map((name) => join(agentDir, name)), ...signIns] : [];
  const found = [
    judgeFolder(folder, code, freeBytes),
    judgeLog(logFile, log),
    tellTrace(input),
    judgeModes(await Promise.all(own.map(look))),
  ].filter((finding) => finding !== undefined);
  return found.length > 0 ? found : [allWell("disk", "The extension's folder can be written.")];
}
