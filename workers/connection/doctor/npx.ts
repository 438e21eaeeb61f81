/** Servers that npx starts: the Node.js on the PATH, and the packages in npx's cache. */
import type { Finding } from "../../../src/shared/protocol/doctor.ts";
import { counted } from "../../../src/shared/text/counts.ts";
import { fillPath } from "../config/entry/fill-path.ts";
import { isLate } from "../config/entry/interpolate.ts";
import { serverEnvironment } from "../config/entry/server-environment.ts";
import { NO_REGISTRY_REMEDY, type NpxState, npxState } from "../npx/npx.ts";
import { proxyFor } from "../web/client.ts";
import { allWell, type DoctorInput, type Examined } from "./check.ts";
import type { Machine } from "./machine.ts";

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
      title: `${program} does not tell its version, so it may not run at all.`,
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
export function judgePackages(
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
  if (kind === "installed" || isReachable !== false) return undefined;
  return {
    id: "npx",
    severity: "warning",
    server,
    title: `${packages.join(" ")} is not in npx's cache, and npm's registry cannot be found.`,
    remedy: NO_REGISTRY_REMEDY,
  };
}

/** The words of the command, if they are known without running anything. */
function wordsOf(
  { definition }: Examined,
  machine: Machine,
): { command: string; args: string[] } | undefined {
  const { target } = definition;
  if (target.kind !== "stdio" || target.args.some((arg) => arg.startsWith("!"))) return undefined;
  const filled = [target.command, ...target.args].map((word) => fillPath(word, machine));
  if (filled.some(({ missing }) => missing.length > 0)) return undefined;
  const [command = "", ...args] = filled.map(({ text }) => text);
  return { command, args };
}

/** Whether a value of the definition holds something that must not be shown. */
const isShown = ({ definition }: Examined): boolean =>
  definition.target.kind === "stdio" && !definition.target.args.some(isLate);

async function reachesRegistry(machine: Machine, signal: AbortSignal): Promise<boolean | undefined> {
  const url = URL.parse(machine.env.npm_config_registry || REGISTRY) ?? new URL(REGISTRY);
  try {
    if (proxyFor(url, machine.env)) return undefined;
    await machine.lookUp(url.hostname, signal);
    return true;
  } catch {
    return false;
  }
}

export async function checkNpx({ servers, machine }: DoctorInput, signal: AbortSignal): Promise<Finding[]> {
  const own = judgeOwnNode(process.versions.bun === undefined ? process.versions.node : undefined);
  const local = servers.filter(({ definition }) => definition.enabled && !definition.project);
  const looked = await Promise.all(
    local.map(async (server) => {
      const words = wordsOf(server, machine);
      const state = words && (await npxState(words.command, words.args, machine));
      return state ? [{ server, state }] : [];
    }),
  );
  const byNpx = looked.flat();
  const [first] = byNpx;
  if (!first) return own ? [own] : [];
  const env = serverEnvironment(
    first.server.definition,
    {},
    { base: machine.env, session: machine.cwd, ...machine },
  );
  const program = await machine.findProgram("node", { env, cwd: machine.home });
  const version = program === undefined ? undefined : await machine.versionOf(program, env, signal);
  const isAbsent = byNpx.some(({ state }) => state.kind === "absent");
  const isReachable = isAbsent ? await reachesRegistry(machine, signal) : undefined;
  const found = [
    own,
    program === undefined
      ? undefined
      : judgeNode(
          program,
          version,
          byNpx.map(({ server }) => server.name),
        ),
    ...byNpx
      .filter(({ server }) => isShown(server))
      .map(({ server, state }) => judgePackages(server.name, state, isReachable)),
  ].filter((finding) => finding !== undefined);
  if (found.length > 0) return found;
  return [allWell("npx", `The packages of ${counted(byNpx.length, "server")} started by npx are in order.`)];
}
