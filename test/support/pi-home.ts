/**
 * Owns: a temporary home for one or more runs of Pi: its folders, its configuration files and its environment.
 * Must not: start Pi.
 * Called by: end-to-end tests and benches; pi-process.ts reads the environment from it.
 */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { killMarked } from "./processes.ts";

/** The provider and model names in every home's models.json. */
export const STUB_PROVIDER = "stub";
export const STUB_MODEL = "stub-model";

/**
 * `-builtin:mcp`: our extension registers `/mcp`, which makes Pi leave its own MCP out and say so at each start
 *   (stderr in print and RPC mode, the screen in interactive mode). With this entry, which a user would set for
 *   the same reason, stderr stays empty and tests can assert that. The entry also keeps the built-in MCP out of
 *   runs without our extension, so that a comparison with bare Pi is one.
 * `retry.enabled`: a request that the scripted model refuses fails at once instead of after three delays.
 */
const DEFAULT_SETTINGS = { extensions: ["-builtin:mcp"], retry: { enabled: false } };

/** Outside variables that runs may see. Everything else (npm_*, PI_*, proxies, API keys, NODE_OPTIONS) leaks. */
const KEPT_VARIABLES = [
  "PATH",
  "LANG",
  "TERM",
  "USER",
  "SHELL",
  "SystemRoot",
  "ComSpec",
  "PATHEXT",
  "windir",
];

export interface HomeOptions {
  /** Content of the user's mcp.json: a value is written as JSON, a string as raw text; left out: no file. */
  mcp?: unknown;
  /** Merged over the default settings, key by key at the top level. */
  settings?: Record<string, unknown>;
  /** Files below the project folder: path -> raw text, or a value that is written as JSON. */
  files?: Readonly<Record<string, unknown>>;
  /** Saves the user's yes (true) or no (false) to the project folder; left out: never asked, so untrusted. */
  trusted?: boolean;
  /**
   * Absolute path of a folder in which Pi finds its transforms and compiled code of other homes' runs, as on a machine
   * where it has run before. Left out: it has none, and a run from raw TypeScript takes several times as long.
   */
  caches?: string;
}

/** What Pi keeps in the temp folder, by content: jiti's transforms and Node's compile cache. */
const CACHE_FOLDERS = ["jiti", "node-compile-cache"];

export interface PiHome {
  /** The home folder. Every process started from it has `HOME=<dir>` unless it replaces its environment. */
  readonly dir: string;
  /** `<dir>/.pi/agent`. */
  readonly agentDir: string;
  /** The project folder, `<dir>/project`: Pi's working directory. */
  readonly cwd: string;
  /** `<dir>/tmp`, the temp folder of every run: Pi's transform cache and our spill files land here. */
  readonly tmpDir: string;
  /** Absolute path of the user's mcp.json. */
  readonly mcpFile: string;
  /** Replaces the user's mcp.json, raw if it is a string. */
  writeMcp(content: unknown): Promise<void>;
  /** Writes a file below the project folder, raw if it is a string; returns its path. */
  writeFile(path: string, content: unknown): Promise<string>;
  /** Points models.json at a scripted model. */
  useModel(url: string): Promise<void>;
  /** The environment of a run, `extra` last; `undefined` removes a variable. */
  env(extra?: Readonly<Record<string, string | undefined>>): Record<string, string>;
  /** Kills what still runs with this home and removes the folder. */
  dispose(): Promise<void>;
}

/** Makes a home below the system's temp folder. Its path is short: sockets below it stay under 104 bytes. */
export async function createHome(options: HomeOptions = {}): Promise<PiHome> {
  const dir = await mkdtemp(join(await realpath(tmpdir()), "pmt-"));
  const agentDir = join(dir, ".pi", "agent");
  const cwd = join(dir, "project");
  const tmpDir = join(dir, "tmp");
  const mcpFile = join(agentDir, "mcp.json");
  for (const folder of [agentDir, cwd, tmpDir]) await mkdir(folder, { recursive: true });
  if (options.caches !== undefined) await shareCaches(options.caches, tmpDir);

  await writeContent(join(agentDir, "settings.json"), { ...DEFAULT_SETTINGS, ...options.settings });
  if (options.mcp !== undefined) await writeContent(mcpFile, options.mcp);
  if (options.trusted !== undefined)
    await writeContent(join(agentDir, "trust.json"), { [cwd]: options.trusted });
  for (const [path, content] of Object.entries(options.files ?? {})) {
    await writeContent(join(cwd, path), content);
  }

  return {
    dir,
    agentDir,
    cwd,
    tmpDir,
    mcpFile,
    writeMcp: (content) => writeContent(mcpFile, content),
    writeFile: async (path, content) => {
      await writeContent(join(cwd, path), content);
      return join(cwd, path);
    },
    useModel: (url) => writeContent(join(agentDir, "models.json"), modelsFile(url)),
    env: (extra = {}) => runEnvironment({ dir, agentDir, tmpDir }, extra),
    dispose: async () => {
      await killMarked(`HOME=${dir}`);
      await rm(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    },
  };
}

async function shareCaches(caches: string, tmpDir: string): Promise<void> {
  for (const name of CACHE_FOLDERS) {
    const shared = join(caches, name);
    await mkdir(shared, { recursive: true });
    await symlink(shared, join(tmpDir, name), "junction");
  }
}

async function writeContent(path: string, content: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content, null, 2));
}

/** A window that no test fills, so that nothing is compacted; images allowed, so that Pi passes them on. */
function modelsFile(url: string): unknown {
  const model = { id: STUB_MODEL, contextWindow: 10_000_000, maxTokens: 1_000, input: ["text", "image"] };
  const provider = { baseUrl: url, api: "openai-completions", apiKey: "x", models: [model] };
  return { providers: { [STUB_PROVIDER]: provider } };
}

function runEnvironment(
  home: { dir: string; agentDir: string; tmpDir: string },
  extra: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const kept = KEPT_VARIABLES.map((name) => [name, process.env[name]] as const);
  const merged: Record<string, string | undefined> = {
    ...Object.fromEntries(kept),
    // Servers whose command is `node` run on the Node of the tests, whatever the machine's own is.
    PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ""}`,
    HOME: home.dir,
    USERPROFILE: home.dir,
    APPDATA: join(home.dir, "appdata"),
    LOCALAPPDATA: join(home.dir, "appdata"),
    TMPDIR: home.tmpDir,
    TEMP: home.tmpDir,
    TMP: home.tmpDir,
    PI_CODING_AGENT_DIR: home.agentDir,
    // No catalog refresh, no telemetry, no version request: a run talks to the scripted model only.
    PI_OFFLINE: "1",
    PI_TELEMETRY: "0",
    PI_SKIP_VERSION_CHECK: "1",
    ...extra,
  };
  const entries = Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}
