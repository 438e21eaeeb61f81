/**
 * Whether Pi has recorded trust for the project, read as Pi 1.5.2 writes it: `<agentDir>/trust.json` maps real folders to
 * true or false, and the nearest folder above counts (Pi's core/trust-manager). A folder in which nothing needs Pi's
 * trust counts as trusted, as for Pi: the servers of its `.mcp.json` still need a consent each.
 */
import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { isObject } from "../../shared/protocol/is-object.ts";
import { TRUST_FILE_BYTES } from "./limits.ts";
import { readRegular } from "./read-regular.ts";

/** `recorded`: Pi's file says so. `nothing`: nothing in the folder needs trust. `no`: neither, with the reason. */
export type PiTrust = { trust: "recorded" | "nothing" } | { trust: "no"; reason: string };

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

/** The folder and all folders above it, the nearest first. */
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
    return { reason: `${file} is no whole JSON` };
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
