/** Owns: the rules for imports between files of `src` and `workers`. CONTRIBUTING.md explains the rules. */
import { posix } from "node:path";
import type { Import } from "./imports.ts";

const isBelow = (folder: string, path: string): boolean => path.startsWith(`${folder}/`);
const isAny = (folders: readonly string[], path: string): boolean =>
  folders.some((folder) => isBelow(folder, path));
const ours = ({ to }: Import): boolean => /^(src|workers)\//.test(to);
const isHub = (path: string): boolean => path === "workers/hub.ts" || isBelow("workers/hub", path);
const SDK = "@modelcontextprotocol/sdk";
const SDK_SERVER = "@modelcontextprotocol/server";

const ABOVE_CONFIG = ["servers", "results", "transports", "session", "catalog", "rpc", "tools", "mcp"].map(
  (folder) => `workers/connection/${folder}`,
);

/** Maps each rule to a function that is true for an import that breaks the rule. */
export const RULES: Readonly<Record<string, (edge: Import) => boolean>> = {
  "src/shared imports nothing but src/shared and pure packages": (edge) =>
    isBelow("src/shared", edge.from) &&
    !isBelow("src/shared", edge.to) &&
    (ours(edge) || (edge.to.startsWith("node:") && !edge.from.endsWith(".d.ts"))),
  "src never imports workers": ({ from, to }) => isBelow("src", from) && isBelow("workers", to),
  "workers import nothing of src but src/shared": ({ from, to }) =>
    isBelow("workers", from) && isBelow("src", to) && !isBelow("src/shared", to),
  "runtime, catalog, report and cli know neither Pi nor tools nor ui": ({ from, to }) =>
    isAny(["src/runtime", "src/catalog", "src/report", "src/cli"], from) &&
    isAny(["src/pi", "src/tools", "src/ui"], to),
  "nobody but the command knows the command, and it knows no session of Pi": ({ from, to }) =>
    (isBelow("src/cli", to) && !isBelow("src/cli", from)) ||
    (isBelow("src/cli", from) && (isBelow("src/session", to) || to === "src/index.ts")),
  "only src/pi may know Pi's packages": ({ from, to }) =>
    !isBelow("src/pi", from) && /^(@earendil-works\/|@sinclair\/typebox|typebox)/.test(to),
  "main imports no library of the workers": ({ from, to }) =>
    isBelow("src", from) &&
    /^(@modelcontextprotocol\/|piscina|chokidar)/.test(to) &&
    !(isBelow("src/cli/serve", from) && to.startsWith(SDK_SERVER)),
  "only what `serve` loads apart imports the SDK's server": ({ from, to }) =>
    to.startsWith(SDK_SERVER) && !/^src\/cli\/serve\/(endpoint|protocol)\.ts$/.test(from),
  "only connection/mcp imports the MCP SDK, also its types": ({ from, to }) =>
    to.startsWith(SDK) && !isBelow("workers/connection/mcp", from),
  "cache and connection never import each other": ({ from, to }) =>
    (isBelow("workers/cache", from) && isBelow("workers/connection", to)) ||
    (isBelow("workers/connection", from) && isBelow("workers/cache", to)),
  "workers/shared knows neither worker": ({ from, to }) =>
    isBelow("workers/shared", from) && isAny(["workers/cache", "workers/connection"], to),
  "the hub knows neither worker, and they know only what starts it": ({ from, to }) =>
    (isHub(from) && isAny(["workers/cache", "workers/connection"], to)) ||
    (isAny(["workers/cache", "workers/connection", "workers/shared"], from) && isBelow("workers/hub", to)),
  "config knows nothing that stands above it": ({ from, to }) =>
    isBelow("workers/connection/config", from) && isAny(ABOVE_CONFIG, to),
};

/** Folders that hold rooms side by side: a file directly in one of them is a room by itself, as a folder is. */
const HOLDS_ROOMS = /^(src|workers|src\/(shared|tools|ui|cli)|workers\/(shared|cache|connection))$/;

/** The room of a file: what may not reach itself through other rooms. */
export const roomOf = (file: string): string => {
  const folder = posix.dirname(file);
  return HOLDS_ROOMS.test(folder) ? file : folder;
};

/** Returns the imports that break a rule, as `from -> to`. */
export const broken = (rule: string, edges: readonly Import[]): string[] =>
  edges.filter((edge) => RULES[rule]?.(edge) ?? true).map(({ from, to }) => `${from} -> ${to}`);
