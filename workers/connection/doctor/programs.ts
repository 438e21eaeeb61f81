/**
 * Whether the commands of servers can be started: the program, its rights and its working directory, the variables that its
 * entry needs, and for npx the Node.js on the PATH and the packages in npx's cache. No `!command` runs for that.
 */

import type { Finding } from "../../../src/shared/protocol/person.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import { isKeyAsVariable } from "../../../src/shared/text/key-shape.ts";
import {
  type Env,
  endsOf,
  namesFile,
  SYSTEM_FOLDERS,
  splitSearchPath,
  valueIn,
} from "../../shared/programs/find-program.ts";
import { dividedCommand, dividedRemedy } from "../../shared/programs/one-text.ts";
import { serverEnvironment } from "../config/entry/cache-identity.ts";
import type { ServerDefinition, StdioTarget } from "../config/entry/definition.ts";
import { inheritedModelKeys } from "../config/entry/inherit-env.ts";
import { fillPath, isLate, pathsOf } from "../config/entry/interpolate.ts";
import { missingVariables } from "../config/values/missing.ts";
import { unsetRemedy, writtenKey } from "../config/values/values.ts";
import { NO_REGISTRY_REMEDY } from "../npx/npm.ts";
import { type NpxState, npxState } from "../npx/tree.ts";
import { proxyFor } from "../web/client.ts";
import { allWell, type DoctorInput, type Examined } from "./check.ts";
import type { Machine } from "./machine.ts";

/** Base name of a command -> how people get it. */
const NODE = "Install Node.js from https://nodejs.org, and start Pi from a shell that finds ";
const UV = "https://docs.astral.sh/uv/getting-started/installation/";
const INSTALL: Readonly<Record<string, string>> = {
  npx: `${NODE}npx.`,
  npm: `${NODE}npm.`,
  node: `${NODE}node.`,
  uv: `Install uv: ${UV}`,
  uvx: `Install uv, which brings uvx: ${UV}`,
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

/** The variables of the definition that can be known without running anything. */
function knownVariables({ env }: StdioTarget, machine: Machine): Env {
  const known = Object.entries(env).flatMap(([name, value]): [string, string][] => {
    if (value.startsWith("!")) return [];
    const filled = fillPath(value, machine);
    return filled.missing.length > 0 ? [] : [[name, filled.text]];
  });
  return Object.fromEntries(known);
}

/** What the server's program gets, as far as it can be known without running anything. */
async function environmentOf(definition: ServerDefinition, target: StdioTarget, machine: Machine) {
  const { env, home, platform, cwd: session } = machine;
  const variables = { base: env, session, home, platform, ends: await endsOf(env, machine) };
  return serverEnvironment({ ...definition, ...target }, knownVariables(target, machine), variables);
}

/**
 * One finding at most: a missing folder explains a missing program. None if a variable is missing, which has a finding of
 * its own, or if only a command knows the folder.
 */
async function checkProgram(
  definition: ServerDefinition,
  target: StdioTarget,
  machine: Machine,
): Promise<Finding | undefined> {
  const { name: server, file } = definition;
  const { platform, cwd: session } = machine;
  const filled = fillPath(target.command, machine);
  const folder = fillPath(target.cwd ?? "", machine);
  if (filled.missing.length > 0 || folder.missing.length > 0 || target.cwd?.startsWith("!")) return undefined;
  const { resolve } = pathsOf(platform);
  const cwd = resolve(session, folder.text);
  const all = await environmentOf(definition, target, machine);
  const [kind, program, named] = await Promise.all([
    machine.kindOf(cwd),
    machine.findProgram(filled.text, { env: all, cwd }),
    namesFile(filled.text, platform) ? machine.kindOf(resolve(cwd, filled.text)) : undefined,
  ]);
  const about = { severity: "error", server, file } as const;
  if (kind !== "folder") {
    return {
      ...about,
      id: "folder",
      title: `The working directory ${cwd} does not exist.`,
      remedy: "Make it, or correct cwd in the file.",
    };
  }
  if (program !== undefined) return undefined;
  const command = isLate(target.command) ? target.command : filled.text;
  const wrong = (what: string, remedy: string): Finding => ({
    ...about,
    id: "command",
    title: `The command "${command}" ${what}.`,
    remedy,
  });
  const divided = isLate(target.command) ? undefined : await dividedCommand(filled.text, cwd);
  if (divided) return wrong("was not found: it holds its arguments too", dividedRemedy(divided));
  if (named === "file") {
    const remedy =
      "chmod +x makes it executable; or name the program that runs it, with the file among its args.";
    return wrong("is not executable", remedy);
  }
  if (named !== undefined) {
    const kinds = {
      missing: "no file",
      folder: "a folder",
      program: "no regular file",
      other: "no regular file",
    };
    const remedy = "Correct the path. A relative one starts in the server's working directory.";
    return wrong(`leads to ${kinds[named]}`, remedy);
  }
  const tool = baseName(command);
  const remedy = (Object.hasOwn(INSTALL, tool) ? INSTALL[tool] : undefined) ?? GENERAL;
  const path = splitSearchPath(valueIn(all, "PATH", platform) ?? SYSTEM_FOLDERS, platform);
  return { ...wrong("is not on PATH", remedy), detail: pathText(path) };
}

export async function checkPrograms({ servers, machine }: DoctorInput): Promise<Finding[]> {
  const checked = servers.flatMap(({ definition }) =>
    definition.enabled && definition.target.kind === "stdio"
      ? [checkProgram(definition, definition.target, machine)]
      : [],
  );
  const found = (await Promise.all(checked)).filter((finding) => finding !== undefined);
  if (found.length > 0 || checked.length === 0) return found;
  return [allWell("command", `The commands of ${counted(checked.length, "server")} are found.`)];
}

/** The SDK of MCP for TypeScript needs this much, and so do nearly all servers that npx starts. */
const LEAST_NODE = 18;
/** This package itself (package.json, engines). */
const LEAST_OWN_NODE = [22, 19] as const;
const REGISTRY = "https://registry.npmjs.org";
const NAMES_SHOWN = 5;

const names = (servers: readonly string[]): string => {
  const more = servers.length - NAMES_SHOWN;
  return `${servers.slice(0, NAMES_SHOWN).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
};

/** `version`: what the program says, for example `v16.20.2`; undefined: it says nothing. `servers`: started by npx. */
export function judgeNode(
  program: string,
  version: string | undefined,
  servers: readonly string[],
): Finding | undefined {
  const major = Number(/^v?(\d+)\./.exec(version ?? "")?.[1] ?? Number.NaN);
  if (Number.isNaN(major)) {
    return {
      id: "node",
      severity: "warning",
      title: `${program} does not say its version, so it may not run at all.`,
      detail: `It runs ${names(servers)}.`,
      remedy: "Run it with --version in a shell; install Node.js again if it fails.",
    };
  }
  if (major >= LEAST_NODE) return undefined;
  return {
    id: "node",
    severity: "error",
    title: `Node.js ${version} is too old for most MCP servers, which need ${LEAST_NODE} or newer.`,
    detail: `${program} comes first on PATH and runs ${names(servers)}.`,
    remedy: "Install a newer Node.js, or set PATH in env of the server to a folder that has one.",
  };
}

/** `own`: version of the Node that runs this worker; undefined: none does. */
export function judgeOwnNode(own: string | undefined): Finding | undefined {
  const [major = 0, minor = 0] = (own ?? "").split(".").map(Number);
  const [leastMajor, leastMinor] = LEAST_OWN_NODE;
  if (own === undefined || major > leastMajor || (major === leastMajor && minor >= leastMinor))
    return undefined;
  return {
    id: "node",
    severity: "error",
    title: `Pi runs on Node.js ${own}, and this extension needs ${leastMajor}.${leastMinor} or newer.`,
    remedy: "Install a newer Node.js and start Pi with it.",
  };
}

/** `isReachable`: whether the registry's name can be looked up; undefined: a proxy does that. */
function judgePackages(
  server: string,
  { packages, kind, folder, reason }: NpxState,
  isReachable: boolean | undefined,
): Finding | undefined {
  if (kind === "broken") {
    return {
      id: "npx",
      severity: "warning",
      server,
      title: `npx's copy of ${packages.join(" ")} is broken: ${reason}.`,
      remedy: "Remove this folder; npx installs the package again at the next start.",
      file: folder,
    };
  }
  if (kind !== "absent" || isReachable !== false) return undefined;
  return {
    id: "npx",
    severity: "warning",
    server,
    title: `${packages.join(" ")} is not in npx's cache, and npm's registry cannot be found.`,
    remedy: NO_REGISTRY_REMEDY,
  };
}

/** The words of the command, if they are known without running anything. */
function wordsOf(target: StdioTarget, machine: Machine): { command: string; args: string[] } | undefined {
  if (target.args.some((arg) => arg.startsWith("!"))) return undefined;
  const filled = [target.command, ...target.args].map((word) => fillPath(word, machine));
  if (filled.some(({ missing }) => missing.length > 0)) return undefined;
  const [command = "", ...args] = filled.map(({ text }) => text);
  return { command, args };
}

/** Whether a value of the definition holds something that must not be shown. */
const isShown = ({ definition }: Examined): boolean =>
  definition.target.kind === "stdio" && !definition.target.args.some(isLate);

/** Which registry, and through which proxy: one look for all servers with the same. */
const wayToRegistry = (env: NodeJS.ProcessEnv): string =>
  JSON.stringify(
    Object.entries(env)
      .filter(([name]) => /^(?:npm_config_registry|(?:https?|no)_proxy)$/i.test(name))
      .sort(),
  );

/** `env`: of the server, which may name a registry and a proxy of its own. */
async function reachesRegistry(
  env: NodeJS.ProcessEnv,
  machine: Machine,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const url = URL.parse(env.npm_config_registry || REGISTRY) ?? new URL(REGISTRY);
  try {
    if (proxyFor(url, env)) return undefined;
    await machine.lookUp(url.hostname, signal);
    return true;
  } catch {
    return false;
  }
}

interface ByNpx {
  server: Examined;
  state: NpxState;
  /** Not every npm leaves a mark of its install. */
  mayInstall: boolean;
  env: Record<string, string>;
  /** The Node.js that npx gets; undefined: none. */
  node: string | undefined;
}

async function lookAtNpx(server: Examined, machine: Machine): Promise<ByNpx | undefined> {
  const { definition } = server;
  const { target } = definition;
  const words = target.kind === "stdio" ? wordsOf(target, machine) : undefined;
  if (target.kind !== "stdio" || !words) return undefined;
  const isStarting = server.status().state === "connecting";
  const env = await environmentOf(definition, target, machine);
  const state = await npxState(words.command, words.args, { ...machine, env });
  if (!state) return undefined;
  const node = await machine.findProgram("node", { env, cwd: machine.home });
  return { server, state, mayInstall: isStarting && state.kind === "broken", env, node };
}

/** One finding at most for each Node.js: servers may have one of their own by `PATH` in `env`. */
async function checkNodes(byNpx: readonly ByNpx[], machine: Machine, signal: AbortSignal) {
  const judged = [...Map.groupBy(byNpx, ({ node }) => node)].map(async ([program, rows]) => {
    const [first] = rows;
    if (program === undefined || !first) return undefined;
    const version = await machine.versionOf(program, first.env, signal);
    return judgeNode(
      program,
      version,
      rows.map(({ server }) => server.name),
    );
  });
  return Promise.all(judged);
}

export async function checkNpx({ servers, machine }: DoctorInput, signal: AbortSignal): Promise<Finding[]> {
  const own = judgeOwnNode(process.versions.bun === undefined ? process.versions.node : undefined);
  const local = servers.filter(({ definition }) => definition.enabled && !definition.project);
  const looked = await Promise.all(local.map((server) => lookAtNpx(server, machine)));
  const byNpx = looked.filter((one) => one !== undefined);
  if (byNpx.length === 0) return own ? [own] : [];
  const absent = byNpx.filter(({ state }) => state.kind === "absent");
  const looks = [...Map.groupBy(absent, ({ env }) => wayToRegistry(env))].map(
    async ([registry, [first]]) =>
      [registry, await reachesRegistry(first?.env ?? {}, machine, signal)] as const,
  );
  const reached = new Map(await Promise.all(looks));
  const found = [
    own,
    ...(await checkNodes(byNpx, machine, signal)),
    ...byNpx
      .filter(({ server, mayInstall }) => isShown(server) && !mayInstall)
      .map(({ server, state, env }) => judgePackages(server.name, state, reached.get(wayToRegistry(env)))),
  ].filter((finding) => finding !== undefined);
  const installed = byNpx.filter(({ state }) => state.kind === "installed" || state.kind === "absent");
  if (found.length > 0 || installed.length === 0) return found;
  return [
    allWell("npx", `The packages of ${counted(installed.length, "server")} started by npx are in order.`),
  ];
}

export function checkVariables({ servers, machine }: DoctorInput): Finding[] {
  const enabled = servers.map(({ definition }) => definition).filter((one) => one.enabled);
  const found = enabled.flatMap((definition) =>
    [...missingVariables(definition, machine)].map(
      ([name, keys]): Finding => ({
        id: "variable",
        severity: "error",
        server: definition.name,
        title: `${isKeyAsVariable(name) ? "A variable with the name of a key" : `The variable ${name}`} is not set, and ${keys.map((key) => writtenKey(definition, key)).join(", ")} ${keys.length === 1 ? "needs" : "need"} it.`,
        remedy: unsetRemedy(definition, name),
        file: definition.file,
      }),
    ),
  );
  if (found.length > 0 || enabled.length === 0) return found;
  return [allWell("variable", `The variables of ${counted(enabled.length, "server")} are set.`)];
}

const KEYS_SHOWN = 8;

/** Names, never values: keys of model providers that local servers get without a need. */
export function checkInherited({ servers, machine }: DoctorInput): Finding[] {
  const byServer = servers.flatMap(({ name, definition: { enabled, target, inheritEnv } }) => {
    const keys =
      enabled && target.kind === "stdio" ? inheritedModelKeys(machine.env, inheritEnv, machine.platform) : [];
    return keys.length === 0 ? [] : [{ name, keys }];
  });
  if (byServer.length === 0) return [];
  const keys = [...new Set(byServer.flatMap((server) => server.keys))];
  const more = keys.length > KEYS_SHOWN ? ` and ${keys.length - KEYS_SHOWN} more` : "";
  return [
    {
      id: "environment",
      severity: "note",
      title: `${counted(byServer.length, "server")} ${byServer.length === 1 ? "gets" : "get"} keys of model providers from your environment: ${names(byServer.map(({ name }) => name))}.`,
      detail: `${keys.slice(0, KEYS_SHOWN).join(", ")}${more}`,
      remedy:
        'Write "inheritEnv": false into the settings or into a server\'s entry, or a list of the variables that it needs.',
    },
  ];
}
