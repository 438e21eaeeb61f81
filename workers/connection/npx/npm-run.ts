/**
 * Runs npm once, for its effect on npm's cache and for the folders that it prints. Owns that process: it has a group of
 * its own, is reported, and has ended before the run settles. The server is never started.
 */
import { resolve } from "node:path";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { killTree, onWindows, spawnServer } from "../../shared/programs/processes.ts";
import { type NpmFailure, type NpmProgress, npmFailure, RETRY_SOON, TALKATIVE } from "./npm-words.ts";
import type { Declined, NpmFacts } from "./tree.ts";

export interface NpmRunOptions {
  /** The file of `npx` or `npm`, and the arguments that make it install packages. */
  npm: { program: string; args: readonly string[] };
  flags: readonly string[];
  /** The node that runs inside npm and prints: not one that a package could have put first on PATH. */
  node: string;
  /** The whole environment. */
  env: Record<string, string>;
  cwd: string;
  /** As the command line writes them. */
  packages: readonly string[];
  /** The longest run, and the longest time in which npm says nothing. */
  limits: NpmLimits;
  progress: NpmProgress;
  signal: AbortSignal;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
}

export interface NpmLimits {
  npxRunMs: number;
  npxSilentMs: number;
}

export type NpmAnswer = NpmFacts & { projectPrefix: string };

const OUTPUT_CHARS = 64 * 1024;
/** Variables that node prints after its own file. */
const SAID = [
  "npm_config_cache",
  "npm_config_global_prefix",
  "npm_config_local_prefix",
  "npm_config_script_shell",
  "NODE_OPTIONS",
];

/** Both kinds of shell read this line alike: two arguments in double quotes with nothing special inside. */
const callLine = (node: string): string =>
  `"${node}" -p "JSON.stringify([process.execPath,${SAID.map((name) => `process.env.${name}`).join()}])"`;

/** Whether a shell reads the path in `callLine` as it is written. */
export const fitsShell = (node: string): boolean =>
  !/["$`%!\r\n]/.test(node) && (onWindows || !node.includes("\\"));

/** Throws the signal's reason if the signal is aborted. Whatever the outcome, nothing is left running. */
export async function runNpm(options: NpmRunOptions): Promise<NpmAnswer | Declined> {
  const { npm, flags, node, signal, packages, env } = options;
  signal.throwIfAborted();
  const ended = await run([...npm.args, ...flags, `--call=${callLine(node)}`], options);
  signal.throwIfAborted();
  if (ended.late) return { reason: ended.late.words, failure: ended.late };
  if (ended.failure !== undefined) {
    const reason = `npm ${ended.failure}`;
    const failure = npmFailure(ended.stderr, { packages, env });
    return failure ? { reason, failure } : { reason };
  }
  return readAnswer(ended.stdout, options);
}

interface Ended {
  stdout: string;
  stderr: string;
  /** The run was ended because it took too long. */
  late: NpmFailure | undefined;
  failure: string | undefined;
}

function run(args: readonly string[], options: NpmRunOptions): Promise<Ended> {
  const { npm, env, cwd, signal, limits, progress, onSpawn, onExit } = options;
  // What the environment sets itself stays.
  const child = spawnServer({
    program: npm.program,
    args,
    env: { ...RETRY_SOON, ...env, ...TALKATIVE },
    cwd,
  });
  const { pid } = child;
  let stdout = "";
  let stderr = "";
  let late: NpmFailure | undefined;
  let killTimer: NodeJS.Timeout | undefined;

  /** SIGTERM comes first, so that npm can remove a half installed package. */
  const stop = (): void => {
    if (pid === undefined || killTimer) return;
    killTree(pid, "SIGTERM");
    killTimer = setTimeout(() => killTree(pid, "SIGKILL"), LIMITS.shutdownTermMs);
  };
  const giveUp = (words: string): void => {
    const remedy = "Try again: what npm has fetched stays in its cache.";
    late ??= { code: "ETIMEDOUT", isNetwork: true, words, remedy };
    stop();
  };
  const wanted = options.packages.join(" ");
  const timer = setTimeout(
    () => giveUp(`npm was not done with ${wanted} within ${limits.npxRunMs / 1_000} s`),
    limits.npxRunMs,
  );
  const silence = setTimeout(
    () => giveUp(`npm heard nothing of its registry for ${limits.npxSilentMs / 1_000} s`),
    limits.npxSilentMs,
  );
  signal.addEventListener("abort", stop, { once: true });

  child.stdin.on("error", () => undefined);
  child.stdin.end();
  child.stdout.on("data", (chunk: Buffer) => {
    stdout = (stdout + chunk.toString("utf8")).slice(-OUTPUT_CHARS);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    const text = chunk.toString("utf8");
    stderr = (stderr + text).slice(-OUTPUT_CHARS);
    progress.see(text);
    silence.refresh();
  });
  if (pid !== undefined) onSpawn(pid);

  return new Promise((settle) => {
    const done = (failure: string | undefined): void => {
      for (const one of [timer, silence, killTimer]) clearTimeout(one);
      signal.removeEventListener("abort", stop);
      settle({ stdout, stderr, late, failure });
    };
    child.once("error", (error) => {
      if (pid === undefined) done(`could not be started: ${messageOf(error)}`);
    });
    // A process that npm leaves in its group could hold the pipes open.
    if (pid !== undefined && !onWindows) child.once("exit", () => killTree(pid, "SIGKILL"));
    child.once("close", (code, by) => {
      if (pid !== undefined) onExit(pid);
      done(code === 0 ? undefined : `ended with ${by ?? `code ${code}`}: ${lastLine(stderr)}`);
    });
  });
}

const lastLine = (text: string): string =>
  text
    .split("\n")
    .filter((line) => /^npm (?:error|ERR!) (?!A complete log)/.test(line))
    .join(" ")
    .slice(0, 300);

function readAnswer(stdout: string, { env, cwd }: NpmRunOptions): NpmAnswer | Declined {
  const line = stdout.split(/\r?\n/).findLast((text) => text.startsWith("["));
  const said = parseStrings(line ?? "");
  const [ranBy, cacheDir, globalPrefix, projectPrefix, shell, options] = said ?? [];
  if (!ranBy || !cacheDir || !globalPrefix || !projectPrefix)
    return { reason: "this npm does not name its folders" };
  if (shell) return { reason: "npm has a script-shell of its own" };
  // npm's settings may add options that are missing in the server's environment.
  if ((options ?? "") !== (env.NODE_OPTIONS ?? "")) return { reason: "npm has node-options of its own" };
  // A relative folder starts from the folder of npm, not from that of this process.
  const folders = { cacheDir: resolve(cwd, cacheDir), globalPrefix: resolve(cwd, globalPrefix) };
  return { ...folders, projectPrefix, node: ranBy };
}

function parseStrings(text: string): (string | null)[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    const strings =
      Array.isArray(parsed) && parsed.every((part) => part === null || typeof part === "string");
    return strings ? (parsed as (string | null)[]) : undefined;
  } catch {
    return undefined;
  }
}
