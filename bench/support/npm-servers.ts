/**
 * Owns: real MCP servers of npm for the scenarios that ask what many of them cost: eight that people use together, in fixed
 * versions below `node_modules/.cache/peers/`, and three of them that this repository has anyway.
 * Must not: start them. Each is started by its own script, so no npm process is part of a figure.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { ServerEntry } from "./variants.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const TARGET = join(ROOT, "node_modules", ".cache", "peers", "eight-servers-1");
const INSTALL_TIMEOUT_MS = 900_000;

interface NpmServer {
  name: string;
  package: string;
  version: string;
  /** Name of its program, where the package has several. */
  bin: string;
  args: (folder: string) => string[];
  env?: (folder: string) => Record<string, string>;
}

/** The server that a bench calls: its tool `echo` answers at once, and by itself alone. */
export const ECHO = { server: "everything", tool: "echo" };

const reference = (name: string, rest: Pick<NpmServer, "args" | "env">): NpmServer => ({
  name,
  package: `@modelcontextprotocol/server-${name}`,
  version: "2026.8.31",
  bin: `mcp-server-${name}`,
  ...rest,
});

const THREE: readonly NpmServer[] = [
  reference(ECHO.server, { args: () => ["stdio"] }),
  reference("filesystem", { args: (folder) => [folder] }),
  reference("memory", {
    args: () => [],
    env: (folder) => ({ MEMORY_FILE_PATH: join(folder, "memory.jsonl") }),
  }),
];

/** None of them is told of a cluster, a database or a key, and none opens a browser before a call. */
const EIGHT: readonly NpmServer[] = [
  ...THREE,
  reference("sequential-thinking", { args: () => [] }),
  {
    name: "chrome-devtools",
    package: "chrome-devtools-mcp",
    version: "1.11.0",
    bin: "chrome-devtools-mcp",
    args: () => ["--headless", "--isolated", "--no-usage-statistics"],
  },
  {
    name: "context7",
    package: "@upstash/context7-mcp",
    version: "4.1.1",
    bin: "context7-mcp",
    args: () => [],
  },
  {
    name: "kubernetes",
    package: "mcp-server-kubernetes",
    version: "4.1.7",
    bin: "mcp-server-kubernetes",
    args: () => [],
  },
  {
    name: "mongodb",
    package: "mongodb-mcp-server",
    version: "3.0.4",
    bin: "mongodb-mcp-server",
    args: () => [],
    env: () => ({ MDB_MCP_TELEMETRY: "disabled" }),
  },
];

/** Takes some minutes once. Answers the folder whose `node_modules` has the packages. */
async function ensureEight(): Promise<string> {
  const stamp = join(TARGET, "stamp");
  const specs = EIGHT.map((server) => `${server.package}@${server.version}`);
  if (existsSync(stamp)) return TARGET;
  await mkdir(dirname(TARGET), { recursive: true });
  const copy = await mkdtemp(join(dirname(TARGET), "new-"));
  try {
    await writeFile(join(copy, "package.json"), JSON.stringify({ private: true }));
    const flags = ["--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--package-lock=false"];
    const args = ["install", ...specs, ...flags, "--loglevel=error"];
    const shell = process.platform === "win32";
    await promisify(execFile)("npm", args, { cwd: copy, shell, timeout: INSTALL_TIMEOUT_MS });
    await writeFile(join(copy, "stamp"), `${specs.join("\n")}\n`);
    await rename(copy, TARGET);
  } catch (error) {
    await rm(copy, { recursive: true, force: true });
    // Another process may have published its copy first.
    if (!existsSync(stamp)) throw error;
  }
  return TARGET;
}

async function entryOf(server: NpmServer, modules: string, folder: string): Promise<ServerEntry> {
  const home = join(modules, server.package);
  const { bin }: { bin: Record<string, string> } = JSON.parse(
    await readFile(join(home, "package.json"), "utf8"),
  );
  const script = bin[server.bin];
  if (script === undefined) throw new Error(`${server.package} has no program ${server.bin}`);
  return {
    command: process.execPath,
    args: [join(home, script), ...server.args(folder)],
    env: server.env?.(folder) ?? {},
    description: `The server ${server.name} of npm.`,
  };
}

/** Entries by name. `folder`: what they may read and write. `few`: the three that need no download. */
export async function npmServers(
  folder: string,
  { few }: { few: boolean },
): Promise<Record<string, ServerEntry>> {
  const modules = join(few ? ROOT : await ensureEight(), "node_modules");
  const entries = (few ? THREE : EIGHT).map(
    async (server) => [server.name, await entryOf(server, modules, folder)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}
