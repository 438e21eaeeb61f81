/**
 * Owns: a temporary home for one or more runs of Pi: its folders, its configuration files and its environment.
 * Must not: start Pi.
 * Called by: end-to-end tests and benches; pi-process.ts reads the environment from it.
 */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { killMarked } from "./processes.ts";
import { makeTempFolder, removeFolder } from "./temp-folder.ts";

/** The provider and model names in every home's models.json. */
export const STUB_PROVIDER = "stub";
export const STUB_MODEL = "stub-model";

/**
 * `-builtin:mcp`: This package registers `/mcp`, so Pi leaves its own MCP out and says so at each start (on stderr in
 *   print and RPC mode, on the screen in interactive mode). With this entry, which a user sets for the same reason,
 *   stderr stays empty and tests can assert that. The entry also removes the built-in MCP from runs without this
 *   package, so that comparisons with bare Pi are fair.
 * `retry.enabled`: A request that the scripted model refuses fails at once instead of after three delays.
 */
const DEFAULT_SETTINGS = { extensions: ["-builtin:mcp"], retry: { enabled: false } };

/** Outside variables that runs may see. All others (npm_*, PI_*, proxies, API keys, NODE_OPTIONS) would change runs. */
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
  /** Content of the user's mcp.json: a string is raw text, any other value becomes JSON. Without it: no file. */
  mcp?: unknown;
  /** Merged over the default settings, key by key at the top level. */
  settings?: Record<string, unknown>;
  /** Files below the project folder by path: a string is raw text, any other value becomes JSON. */
  files?: Readonly<Record<string, unknown>>;
  /** Stores the user's yes (true) or no (false) to the project folder. Without it: never asked, so untrusted. */
  trusted?: boolean;
  /**
   * Absolute path of a folder with the transforms and the compiled code of earlier runs in other homes, as on a machine
   * where Pi has run before. Without it, a run from raw TypeScript takes several times as long.
   */
  caches?: string;
}

/** Folders in the temp folder whose entries are named by content: jiti's transforms and Node's compile cache. */
const CACHE_FOLDERS = ["jiti", "node-compile-cache"];

export interface PiHome {
  /** The home folder. Every process of a run has `HOME=<dir>` unless it replaces its environment. */
  readonly dir: string;
  /** `<dir>/.pi/agent`. */
  readonly agentDir: string;
  /** The project folder, `<dir>/project`: Pi's working directory. */
  readonly cwd: string;
  /** `<dir>/tmp`, the temp folder of every run. Pi's transform cache and this package's stored results land here. */
  readonly tmpDir: string;
  /** Absolute path of the user's mcp.json. */
  readonly mcpFile: string;
  /** Replaces the user's mcp.json: a string is raw text, any other value becomes JSON. */
  writeMcp(content: unknown): Promise<void>;
  /**
   * Writes a file below the project folder and returns its path: a string is raw text, any other value becomes JSON.
   */
  writeFile(path: string, content: unknown): Promise<string>;
  /** Points models.json at a scripted model. */
  useModel(url: string): Promise<void>;
  /** The environment of a run, `extra` last; `undefined` removes a variable. */
  env(extra?: Readonly<Record<string, string | undefined>>): Record<string, string>;
  /** Kills every process that still runs with this home and removes the folder. */
  dispose(): Promise<void>;
}

/** Makes a home below the system's temp folder. Its path is short: sockets below it stay under 104 bytes. */
export async function createHome(options: HomeOptions = {}): Promise<PiHome> {
  const dir = await makeTempFolder("pmt");
  const agentDir = join(dir, ".pi", "agent");
  const cwd = join(dir, "project");
  const tmpDir = join(dir, "tmp");
  const mcpFile = join(agentDir, "mcp.json");
  await mkdir(tmpDir);
  await fillHome(dir, options, cwd);
  if (options.caches !== undefined) await shareCaches(options.caches, tmpDir, agentDir);

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
      await removeFolder(dir);
    },
  };
}

/**
 * Makes the agent folder and the project folder below `root` and writes what the options ask for. `cwd` is the path at
 * which Pi finds the project folder.
 */
export async function fillHome(
  root: string,
  { settings, mcp, trusted, files = {} }: HomeOptions,
  cwd: string,
): Promise<void> {
  const agentDir = join(root, ".pi", "agent");
  await mkdir(join(root, "project"), { recursive: true });
  await writeContent(join(agentDir, "settings.json"), { ...DEFAULT_SETTINGS, ...settings });
  if (mcp !== undefined) await writeContent(join(agentDir, "mcp.json"), mcp);
  if (trusted !== undefined) await writeContent(join(agentDir, "trust.json"), { [cwd]: trusted });
  for (const [path, content] of Object.entries(files))
    await writeContent(join(root, "project", path), content);
}

async function shareCaches(caches: string, tmpDir: string, agentDir: string): Promise<void> {
  for (const name of CACHE_FOLDERS) {
    const shared = join(caches, name);
    await mkdir(shared, { recursive: true });
    await symlink(shared, join(tmpDir, name), "junction");
  }
  // The folder of this package's own compiled code.
  await symlink(join(caches, "node-compile-cache"), join(agentDir, "mcp-code"), "junction");
}

async function writeContent(path: string, content: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, contentText(content));
}

/** The text of a file: a string is raw text, any other value becomes JSON. */
export const contentText = (content: unknown): string =>
  typeof content === "string" ? content : JSON.stringify(content, null, 2);

/** No test fills the context window, so Pi compacts nothing. The model accepts images, so Pi passes them on. */
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
    // Servers whose command is `node` run on the Node of the tests, not on another Node of the machine.
    PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ""}`,
    HOME: home.dir,
    USERPROFILE: home.dir,
    APPDATA: join(home.dir, "appdata"),
    LOCALAPPDATA: join(home.dir, "appdata"),
    TMPDIR: home.tmpDir,
    TEMP: home.tmpDir,
    TMP: home.tmpDir,
    PI_CODING_AGENT_DIR: home.agentDir,
    // A run talks to the scripted model only: no catalog refresh, no telemetry, no version request.
    PI_OFFLINE: "1",
    PI_TELEMETRY: "0",
    PI_SKIP_VERSION_CHECK: "1",
    ...extra,
  };
  const entries = Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}
