/** Whether the commands of servers can be started: the program, its rights, and its working directory. */
import type { Finding } from "../../../src/shared/protocol/doctor.ts";
import { counted } from "../../../src/shared/text/counts.ts";
import { type Env, valueIn } from "../../shared/programs/environment.ts";
import { namesFile } from "../../shared/programs/find-program.ts";
import { SYSTEM_FOLDERS, splitSearchPath } from "../../shared/programs/search-path.ts";
import { serverEnvironment } from "../config/entry/cache-identity.ts";
import type { ServerDefinition, StdioTarget } from "../config/entry/definition.ts";
import { fillPath, isLate, pathsOf } from "../config/entry/interpolate.ts";
import { allWell, type DoctorInput } from "./check.ts";
import type { Machine } from "./machine.ts";

/** What the machine says about the command of one server. */
export interface LookedProgram {
  server: string;
  file: string;
  /** As it is written. */
  command: string;
  /** Where it was found; undefined: nowhere. */
  program: string | undefined;
  /** A command that names a file -> what is there. */
  named: Awaited<ReturnType<Machine["kindOf"]>> | undefined;
  cwd: string;
  isFolder: boolean;
  /** Entries of the search path of the server. */
  path: readonly string[];
}

/** Base name of a command -> how people get it. */
const INSTALL: Readonly<Record<string, string>> = {
  npx: "Install Node.js from https://nodejs.org, and start Pi from a shell that finds npx.",
  npm: "Install Node.js from https://nodejs.org, and start Pi from a shell that finds npm.",
  node: "Install Node.js from https://nodejs.org, and start Pi from a shell that finds node.",
  uv: "Install uv: https://docs.astral.sh/uv/getting-started/installation/",
  uvx: "Install uv, which brings uvx: https://docs.astral.sh/uv/getting-started/installation/",
  docker: "Install Docker or a program with its command line, and start Pi from a shell that finds docker.",
  podman: "Install Podman, and start Pi from a shell that finds podman.",
  python: "Install Python, or write python3 as the command.",
  python3: "Install Python 3.",
  bun: "Install Bun: https://bun.sh",
  bunx: "Install Bun, which brings bunx: https://bun.sh",
  deno: "Install Deno: https://deno.com",
};

const GENERAL = "Install it, or write its whole path as the command.";
const baseName = (command: string): string =>
  (command.split(/[\\/]/).at(-1) ?? "").replace(/\.(cmd|exe)$/i, "").toLowerCase();
const PATH_ENTRIES = 12;

function pathText(path: readonly string[]): string {
  const shown = path.slice(0, PATH_ENTRIES).join(", ");
  const more = path.length - PATH_ENTRIES;
  return `PATH has ${shown || "no folder"}${more > 0 ? ` and ${more} more` : ""}.`;
}

/** One finding at most: a missing folder explains a missing program. */
export function judgeProgram(looked: LookedProgram): Finding | undefined {
  const { server, file, command, program, named, cwd, isFolder, path } = looked;
  const about = { severity: "error", server, file } as const;
  if (!isFolder) {
    return {
      ...about,
      id: "folder",
      title: `The working directory ${cwd} does not exist.`,
      remedy: "Make it, or correct cwd in the file.",
    };
  }
  if (program !== undefined) return undefined;
  if (named === undefined) {
    const tool = baseName(command);
    return {
      ...about,
      id: "command",
      title: `The command "${command}" is not on PATH.`,
      detail: pathText(path),
      remedy: (Object.hasOwn(INSTALL, tool) ? INSTALL[tool] : undefined) ?? GENERAL,
    };
  }
  if (named === "file") {
    return {
      ...about,
      id: "command",
      title: `The command "${command}" is not executable.`,
      remedy: `chmod +x makes it executable; or name the program that runs it, with the file among its args.`,
    };
  }
  const found =
    named === "missing"
      ? "leads to no file"
      : `leads to ${named === "folder" ? "a folder" : "no regular file"}`;
  return {
    ...about,
    id: "command",
    title: `The command "${command}" ${found}.`,
    remedy: "Correct the path. A relative one starts in the server's working directory.",
  };
}

/** The variables of the definition that can be known without running anything. */
function knownVariables({ env: own }: StdioTarget, { env, home, platform }: Machine): Env {
  const known = Object.entries(own).flatMap(([name, value]): [string, string][] => {
    if (value.startsWith("!")) return [];
    const filled = fillPath(value, { env, home, platform });
    return filled.missing.length > 0 ? [] : [[name, filled.text]];
  });
  return Object.fromEntries(known);
}

/** Undefined if a variable is missing, which has a finding of its own, or if only a command knows the folder. */
export async function lookAtProgram(
  definition: ServerDefinition,
  machine: Machine,
): Promise<LookedProgram | undefined> {
  const { target, name: server, file } = definition;
  if (target.kind !== "stdio") return undefined;
  const { env, home, platform, cwd: session } = machine;
  const filled = fillPath(target.command, { env, home, platform });
  const folder = fillPath(target.cwd ?? "", { env, home, platform });
  if (filled.missing.length > 0 || folder.missing.length > 0) return undefined;
  if (target.cwd?.startsWith("!")) return undefined;
  const { resolve } = pathsOf(platform);
  const cwd = resolve(session, folder.text);
  const all = serverEnvironment(definition, knownVariables(target, machine), {
    base: env,
    session,
    home,
    platform,
  });
  const isNamed = namesFile(filled.text, platform);
  const [kind, program, named] = await Promise.all([
    machine.kindOf(cwd),
    machine.findProgram(filled.text, { env: all, cwd }),
    isNamed ? machine.kindOf(resolve(cwd, filled.text)) : undefined,
  ]);
  return {
    server,
    file,
    command: isLate(target.command) ? target.command : filled.text,
    program,
    named,
    cwd,
    isFolder: kind === "folder",
    path: splitSearchPath(valueIn(all, "PATH", platform) ?? SYSTEM_FOLDERS, platform),
  };
}

export async function checkPrograms({ servers, machine }: DoctorInput): Promise<Finding[]> {
  const local = servers.filter(({ definition }) => definition.enabled && definition.target.kind === "stdio");
  const looked = await Promise.all(local.map(({ definition }) => lookAtProgram(definition, machine)));
  const found = looked.flatMap((one) => (one && judgeProgram(one)) ?? []);
  if (found.length > 0 || local.length === 0) return found;
  return [allWell("command", `The commands of ${counted(local.length, "server")} are found.`)];
}
