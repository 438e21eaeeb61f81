/**
 * Turns `npx ...` and `npm exec ...` into the binary that they would run, so that no npm stays as the server's parent.
 * Owns: the order of the search, which is npx's own, and the file `mcp-npx-cache.json`. In any doubt npm itself is run.
 * Must not: start the server.
 * To support another package runner: a parser beside command.ts, and what it installs beside tree.ts.
 */

import { isAbsolute } from "node:path";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { writeFileAtomic } from "../../shared/files/file-system.ts";
import { readTextOrThrow, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";
import { findHere, isFile } from "../../shared/programs/find-program.ts";
import { type NpxRequest, parseNpxCommand } from "./command.ts";
import {
  decisiveSetting,
  environmentKey,
  findNode,
  launchOf,
  type NeutralFolder,
  NO_WORKSPACES,
  type NpxLaunch,
  neutralFolder,
  throughNpm,
} from "./launch.ts";
import {
  type Declined,
  fitsShell,
  type NpmAnswer,
  type NpmFacts,
  type NpmFailure,
  type NpmLimits,
  NpmProgress,
  type NpmRun,
  npmFailure,
  runNpm,
  type Waiting,
} from "./npm.ts";
import {
  chooseTree,
  isComplete,
  locate,
  type Project,
  readProject,
  type Tree,
  treeInProject,
} from "./tree.ts";

interface NpxTarget {
  command: string;
  args: readonly string[];
  /** The whole environment of the server. */
  env: Record<string, string>;
  /** Folder of the server. */
  cwd: string;
  /**
   * A folder for npm to run in, made if it does not exist, so that `cwd` and the folders above it do not decide what is
   * started. Undefined: npm runs in `cwd`, and the settings and packages there count.
   */
  neutral: string | undefined;
}

interface NpxOptions {
  /** `mcp-npx-cache.json`. */
  cacheFile: string;
  signal: AbortSignal;
  /** Name of the server, for the error. */
  server: string;
  /** Gets one line that says why npx itself is run. */
  onNote: (note: string) => void;
  /** What is being waited for, each second once npm takes longer than usual; undefined: nothing any more. */
  onWait?: ((text: string | undefined) => void) | undefined;
  onSpawn: NpmRun["onSpawn"];
  onExit: NpmRun["onExit"];
  /** Milliseconds since 1970. */
  now?: () => number;
  /** Absent: `LIMITS`. */
  limits?: NpmLimits;
}

/** Input of every step. */
interface Resolution extends NpmRun {
  request: NpxRequest;
  /** The folder that npm takes for the project around `cwd`. */
  prefix: string;
  /** The project whose packages come first; undefined if no project counts. */
  project: Project | undefined;
  /** Hash of everything but the packages that decides what npm finds. */
  environment: string;
  options: NpxOptions;
}

const shareAsking = createTaskSharing<NpmAnswer | Declined>();
const shareInstalling = createTaskSharing<NpmFacts | Declined>();
/** The installs that run, by their keys: their users tell how far they are. */
const installs = new Map<string, NpmProgress>();

/** The first word about a run of npm that takes longer than usual, and each further one. */
const FIRST_WORD_MS = 2_000;
const NEXT_WORD_MS = 1_000;

/**
 * Undefined: use the original command. Rejects if the signal is aborted, with the signal's reason, and with
 * `connect_failed` if npm cannot fetch the package, which npm itself as the parent could not either; then nothing is left
 * running.
 */
export async function resolveNpx(target: NpxTarget, options: NpxOptions): Promise<NpxLaunch | undefined> {
  const parsed = parseNpxCommand(target.command, target.args);
  if (parsed.kind === "other") return undefined;
  const neutral = target.neutral === undefined ? undefined : await neutralFolder(target.neutral);
  try {
    const outcome: NpxLaunch | Declined =
      parsed.kind === "unsure" ? parsed : await resolve(parsed.request, target, neutral, options);
    if (!("reason" in outcome)) return outcome;
    if (outcome.failure) throw npmError(options.server, outcome.failure);
    options.onNote(`is started through npm itself: ${outcome.reason}`);
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof ThreadsError) throw error;
    options.onNote(`is started through npm itself: ${messageOf(error)}`);
  }
  // npm itself starts the server, outside every project.
  const program = neutral && (await findHere(parsed.words.command, target));
  if (!neutral || program === undefined) return undefined;
  if (neutral.shell === undefined)
    options.onNote(`runs in ${neutral.path}, as npm does: npm cannot start it in another folder here`);
  return throughNpm(program, parsed.words, { ...target, neutral });
}

const npmError = (server: string, failure: NpmFailure): ThreadsError =>
  new ThreadsError("connect_failed", `${server} cannot be started: ${failure.words}.`, {
    remedy: failure.remedy,
    data: { server, reason: `npm-${failure.code}` },
  });

/** Why npm, as the parent of a server, has ended before the server started; undefined for any other command or reason. */
export function explainNpm(
  server: string,
  { command, args, env }: Pick<NpxTarget, "command" | "args" | "env">,
  stderr: string,
): ThreadsError | undefined {
  const parsed = parseNpxCommand(command, args);
  if (parsed.kind === "other") return undefined;
  const packages = parsed.kind === "npx" ? parsed.request.packages.map(({ raw }) => raw) : ["its package"];
  const failure = npmFailure(stderr, packages, env);
  return failure && npmError(server, failure);
}

async function resolve(
  request: NpxRequest,
  target: NpxTarget,
  neutral: NeutralFolder | undefined,
  options: NpxOptions,
): Promise<NpxLaunch | Declined> {
  const { env, cwd } = target;
  const setting = decisiveSetting(env);
  if (setting !== undefined) return { reason: `${setting} is set` };
  const project = neutral ? undefined : await readProject(cwd);
  if (project && "reason" in project) return project;
  const program = await findHere(request.npm.command, target);
  const node = await findNode(env, cwd);
  if (program === undefined || node === undefined) return { reason: "npm or node is not on the PATH" };
  if (!fitsShell(node)) return { reason: `a shell could misread ${node}` };
  const place = { cwd: neutral?.path ?? cwd, prefix: neutral?.path ?? project?.prefix ?? cwd };
  const environment = await environmentKey({ env, programs: [program, node], ...place });

  const local = project && (await treeInProject(request, project));
  if (local && "reason" in local) return local;
  const { limits = LIMITS, onSpawn, onExit } = options;
  const packages = request.packages.map(({ raw }) => raw);
  const run = { program, npmArgs: request.npm.args, node, env, packages, limits, onSpawn, onExit, ...place };
  const facts = await installed({ ...run, request, project, environment, options });
  if ("reason" in facts) return facts;
  const tree = await chooseTree(request, project, facts);
  if ("reason" in tree) return tree;
  const binary = await locate(tree, request);
  if ("reason" in binary) return binary;
  const { args } = request;
  return project
    ? launchOf(binary, { env, cwd, binFolders: project.binFolders, args })
    : launchOf(binary, { env, cwd, binFolders: [], args, node: facts.node });
}

/** One run of npm for all callers that want these packages in this environment at the same time. */
async function installed(resolution: Resolution): Promise<NpmFacts | Declined> {
  const { request, packages, environment, options } = resolution;
  const key = [environment.slice(0, 32), request.bin ?? "", ...packages].join(" ");
  const startedAt = performance.now();
  let hasSpoken = false;
  const tell = (): void => {
    hasSpoken = true;
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    options.onWait?.((installs.get(key) ?? new NpmProgress()).text(packages, seconds));
    timer = setTimeout(tell, NEXT_WORD_MS);
  };
  let timer = setTimeout(tell, FIRST_WORD_MS);
  try {
    return await shareInstalling(key, options.signal, (signal) => {
      const progress = new NpmProgress();
      installs.set(key, progress);
      return install(resolution, key, { progress, signal }).finally(() => {
        if (installs.get(key) === progress) installs.delete(key);
      });
    });
  } finally {
    clearTimeout(timer);
    if (hasSpoken) options.onWait?.(undefined);
  }
}

async function install(resolution: Resolution, key: string, waiting: Waiting): Promise<NpmFacts | Declined> {
  const { request, packages, project, prefix, environment, options } = resolution;
  const now = options.now ?? Date.now;
  const known = await readNpxEntry(options.cacheFile, key, now());
  if (known && (await isStillThere(resolution, known))) return known;

  const beside = project ? [] : [NO_WORKSPACES];
  const answer = await shareAsking(environment, waiting.signal, (signal) =>
    runNpm(resolution, beside, { ...waiting, signal }),
  );
  if ("reason" in answer) return answer;
  if (answer.projectPrefix !== prefix) return { reason: `npm takes ${answer.projectPrefix} for the project` };
  const tree = await chooseTree(request, project, answer);
  if ("reason" in tree) return tree;
  // npx asks the registry unless the version is exact: npm's cache alone cannot tell the newest one.
  const isExact = request.packages.every(({ kind }) => kind === "version");
  if (tree.kind === "cache" && !(isExact && (await isUsable(request, tree)))) {
    const flags = [...(request.yes ? ["--yes"] : []), ...packages.map((raw) => `--package=${raw}`)];
    const ran = await runNpm(resolution, [...beside, ...flags], waiting);
    if ("reason" in ran && ran.failure?.isNetwork && (await isUsable(request, tree))) {
      // The next start asks npm again.
      options.onNote(`starts as it is installed, because ${ran.failure.words}`);
      return answer;
    }
    if ("reason" in ran) return ran;
  }
  const { cacheDir, globalPrefix, node } = answer;
  const entry = { packages, from: tree.kind, cacheDir, globalPrefix, node, checkedAt: now() };
  await writeNpxEntry(options.cacheFile, key, entry).catch((error) => {
    options.onNote(`mcp-npx-cache.json could not be written: ${messageOf(error)}`);
  });
  return entry;
}

/** Whether the entry still leads to a file that can be started, in the tree in which the file was found. */
async function isStillThere({ request, project }: Resolution, known: NpxCacheEntry): Promise<boolean> {
  const tree = await chooseTree(request, project, known);
  if (!(await isFile(known.node))) return false;
  return !("reason" in tree) && tree.kind === known.from && !("reason" in (await locate(tree, request)));
}

/** An earlier install is there, in a version that the command allows. */
const isUsable = async (request: NpxRequest, tree: Tree): Promise<boolean> =>
  (await isComplete(tree)) && !("reason" in (await locate(tree, request)));

/*
 * `mcp-npx-cache.json`, version 1: the packages for which npm was asked in the last 24 hours, and the folders in which npm
 * keeps them. The file holds no path of a server: every entry is checked against the installed package again. A file that
 * is corrupt, foreign or unreadable counts as empty. Several Pi processes may write the file: each write is atomic, and npm
 * is asked again for an entry that another process has overwritten.
 */
const NPX_CACHE_VERSION = 1;
const MAX_ENTRIES = 500;
/** The clocks of two machines that share a home folder may differ by this much. */
const CLOCK_SKEW_MS = 60_000;

interface NpxCacheEntry extends NpmFacts {
  /** As the command line writes them; for people who read the file. */
  packages: readonly string[];
  /** The tree from which npx takes them. */
  from: Tree["kind"];
  /** When npm was asked, in milliseconds since 1970. */
  checkedAt: number;
}

const isEntry = (value: unknown): value is NpxCacheEntry =>
  isObject(value) &&
  typeof value.checkedAt === "number" &&
  Array.isArray(value.packages) &&
  typeof value.from === "string" &&
  [value.cacheDir, value.globalPrefix, value.node].every(
    (path) => typeof path === "string" && isAbsolute(path),
  );

const isFresh = ({ checkedAt }: NpxCacheEntry, now: number): boolean =>
  now - checkedAt < LIMITS.npxFreshMs && checkedAt - now < CLOCK_SKEW_MS;

async function readFresh(file: string, now: number): Promise<Record<string, NpxCacheEntry>> {
  try {
    const parsed: unknown = JSON.parse(await readTextOrThrow(file, SMALL_FILE_BYTES));
    if (!isObject(parsed) || parsed.version !== NPX_CACHE_VERSION || !isObject(parsed.entries)) return {};
    const entries = Object.entries(parsed.entries).filter(
      (entry): entry is [string, NpxCacheEntry] => isEntry(entry[1]) && isFresh(entry[1], now),
    );
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}

export async function readNpxEntry(
  file: string,
  key: string,
  now: number,
): Promise<NpxCacheEntry | undefined> {
  const entries = await readFresh(file, now);
  return Object.hasOwn(entries, key) ? entries[key] : undefined;
}

/** Writes of this process run one after another, because each one reads the result of the last. */
let writing: Promise<unknown> = Promise.resolve();

/** Adds an entry and drops the old ones. Rejects with the error of the file system. */
export function writeNpxEntry(file: string, key: string, entry: NpxCacheEntry): Promise<void> {
  const write = async (): Promise<void> => {
    const others = Object.entries(await readFresh(file, entry.checkedAt)).filter(([other]) => other !== key);
    const entries = Object.fromEntries([...others, [key, entry] as const].slice(-MAX_ENTRIES));
    await writeFileAtomic(file, `${JSON.stringify({ version: NPX_CACHE_VERSION, entries })}\n`);
  };
  const written = writing.then(write);
  writing = written.catch(() => undefined);
  return written;
}

interface OpenTask<T> {
  outcome: Promise<T>;
  controller: AbortController;
  users: number;
}

/**
 * Lets several callers wait for one run of a task. A caller whose signal is aborted rejects with the signal's reason; the
 * last caller only when the task, which is then aborted, is over.
 */
export function createTaskSharing<T>() {
  type Task = (signal: AbortSignal) => Promise<T>;
  const open = new Map<string, OpenTask<T>>();

  const start = (key: string, task: Task): OpenTask<T> => {
    const controller = new AbortController();
    const started: OpenTask<T> = { outcome: task(controller.signal), controller, users: 0 };
    const close = (): void => {
      if (open.get(key) === started) open.delete(key);
    };
    started.outcome.then(close, close);
    open.set(key, started);
    return started;
  };

  return async (key: string, signal: AbortSignal, task: Task): Promise<T> => {
    signal.throwIfAborted();
    const shared = open.get(key) ?? start(key, task);
    shared.users++;
    const left = Promise.withResolvers<never>();
    const leave = (): void => left.reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([shared.outcome, left.promise]);
    } finally {
      signal.removeEventListener("abort", leave);
      shared.users--;
      if (shared.users === 0 && signal.aborted) {
        // A caller that comes now starts a new run.
        if (open.get(key) === shared) open.delete(key);
        shared.controller.abort(signal.reason);
        await shared.outcome.catch(() => undefined);
      }
    }
  };
}
