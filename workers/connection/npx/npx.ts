/**
 * Turns `npx ...` and `npm exec ...` into the binary that they would run, so that no npm stays as the server's parent.
 * Owns: the order of the search, which is npx's own, and the file `mcp-npx-cache.json`. In any doubt npm itself is run.
 * Must not: start the server. Called by: transports/stdio.
 * To support another package runner: a parser beside command.ts, and what it installs beside tree.ts.
 */

import { isAbsolute } from "node:path";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { writeFileAtomic } from "../../shared/files/atomic-file.ts";
import { readTextOrThrow, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";
import { findHere, isFile } from "../../shared/programs/find-program.ts";
import { type NpmWords, type NpxRequest, parseNpxCommand } from "./command.ts";
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
  npmFailure,
  runNpm,
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
  /** npm has been started, and has ended: the main thread ends what still runs when Pi exits. */
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  /** Milliseconds since 1970. */
  now?: () => number;
  /** Absent: `LIMITS`. */
  limits?: NpmLimits;
}

/** The folder in which npm runs, and the project that counts there. */
interface NpmPlace {
  cwd: string;
  /** The folder that npm takes for the project around `cwd`. */
  prefix: string;
  /** The project whose packages come first; undefined if no project counts. */
  project: Project | undefined;
}

/** Input of every step. */
interface Resolution {
  request: NpxRequest;
  target: NpxTarget;
  place: NpmPlace;
  /** The file of `npx` or `npm`. */
  npm: string;
  /** The file of the node that runs inside npm. */
  node: string;
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
      parsed.kind === "unsure" ? parsed : await resolve(parsed.request, target, { neutral, options });
    if (!("reason" in outcome)) return outcome;
    if (outcome.failure) throw npmError(options.server, outcome.failure);
    options.onNote(`is started through npm itself: ${outcome.reason}`);
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof ThreadsError) throw error;
    options.onNote(`is started through npm itself: ${messageOf(error)}`);
  }
  return neutral && byNpm(parsed.words, target, { neutral, options });
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
  const failure = npmFailure(stderr, { packages, env });
  return failure && npmError(server, failure);
}

/** Starts the server through npm itself, outside every project. Undefined if there is no npm. */
async function byNpm(
  words: NpmWords,
  target: NpxTarget,
  { neutral, options }: { neutral: NeutralFolder; options: NpxOptions },
): Promise<NpxLaunch | undefined> {
  const program = await findHere(words.command, target);
  if (program === undefined) return undefined;
  const launch = throughNpm(program, words, { ...target, neutral });
  if (neutral.shell === undefined) {
    options.onNote(`runs in ${neutral.path}, as npm does: npm cannot start it in another folder here`);
  }
  return launch;
}

async function placeOf({ cwd }: NpxTarget, neutral: NeutralFolder | undefined): Promise<NpmPlace | Declined> {
  if (neutral) return { cwd: neutral.path, prefix: neutral.path, project: undefined };
  const project = await readProject(cwd);
  return "reason" in project ? project : { cwd, prefix: project.prefix, project };
}

async function resolve(
  request: NpxRequest,
  target: NpxTarget,
  { neutral, options }: { neutral: NeutralFolder | undefined; options: NpxOptions },
): Promise<NpxLaunch | Declined> {
  const { env, cwd } = target;
  const setting = decisiveSetting(env);
  if (setting !== undefined) return { reason: `${setting} is set` };
  const place = await placeOf(target, neutral);
  if ("reason" in place) return place;
  const npm = await findHere(request.npm.command, target);
  const node = await findNode(env, cwd);
  if (npm === undefined || node === undefined) return { reason: "npm or node is not on the PATH" };
  if (!fitsShell(node)) return { reason: `a shell could misread ${node}` };
  const environment = await environmentKey({ env, programs: [npm, node], ...place });

  const local = place.project && (await treeInProject(request, place.project));
  if (local && "reason" in local) return local;
  const facts = await installed({ request, target, place, npm, node, environment, options });
  if ("reason" in facts) return facts;
  const tree = await chooseTree(request, place.project, facts);
  if ("reason" in tree) return tree;
  const binary = await locate(tree, request);
  if ("reason" in binary) return binary;
  const { args } = request;
  return place.project
    ? launchOf(binary, { env, cwd, binFolders: place.project.binFolders, args })
    : launchOf(binary, { env, cwd, binFolders: [], args, node: facts.node });
}

/** One run of npm for all callers that want these packages in this environment at the same time. */
async function installed(resolution: Resolution): Promise<NpmFacts | Declined> {
  const { request, environment, options } = resolution;
  const packages = request.packages.map(({ raw }) => raw);
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
      return install(resolution, { key, progress, signal }).finally(() => {
        if (installs.get(key) === progress) installs.delete(key);
      });
    });
  } finally {
    clearTimeout(timer);
    if (hasSpoken) options.onWait?.(undefined);
  }
}

interface Install {
  key: string;
  progress: NpmProgress;
  signal: AbortSignal;
}

async function install(
  resolution: Resolution,
  { key, progress, signal }: Install,
): Promise<NpmFacts | Declined> {
  const { request, place, environment, options } = resolution;
  const now = options.now ?? Date.now;
  const known = await readNpxEntry(options.cacheFile, key, now());
  if (known && (await isStillThere(resolution, known))) return known;

  const answer = await shareAsking(environment, signal, (shared) =>
    npmRun(resolution, [], { progress, signal: shared }),
  );
  if ("reason" in answer) return answer;
  if (answer.projectPrefix !== place.prefix) {
    return { reason: `npm takes ${answer.projectPrefix} for the project` };
  }
  const tree = await chooseTree(request, place.project, answer);
  if ("reason" in tree) return tree;
  if (tree.kind === "cache" && !(await isUpToDate(request, tree))) {
    const flags = request.packages.map(({ raw }) => `--package=${raw}`);
    const ran = await npmRun(resolution, request.yes ? ["--yes", ...flags] : flags, { progress, signal });
    if ("reason" in ran && ran.failure?.isNetwork && (await isUsable(request, tree))) {
      // The next start asks npm again.
      options.onNote(`starts as it is installed, because ${ran.failure.words}`);
      return answer;
    }
    if ("reason" in ran) return ran;
  }
  const { cacheDir, globalPrefix, node } = answer;
  const packages = request.packages.map(({ raw }) => raw);
  const entry = { packages, from: tree.kind, cacheDir, globalPrefix, node, checkedAt: now() };
  await writeNpxEntry(options.cacheFile, key, entry).catch((error) => {
    options.onNote(`mcp-npx-cache.json could not be written: ${messageOf(error)}`);
  });
  return entry;
}

/** Whether the entry still leads to a file that can be started, in the tree in which the file was found. */
async function isStillThere({ request, place }: Resolution, known: NpxCacheEntry): Promise<boolean> {
  const tree = await chooseTree(request, place.project, known);
  if (!(await isFile(known.node))) return false;
  return !("reason" in tree) && tree.kind === known.from && !("reason" in (await locate(tree, request)));
}

/** npx asks the registry unless the version is exact: npm's cache alone cannot tell the newest one. */
const isUpToDate = async (request: NpxRequest, tree: Tree): Promise<boolean> =>
  request.packages.every(({ kind }) => kind === "version") && (await isUsable(request, tree));

/** An earlier install is there, in a version that the command allows. */
const isUsable = async (request: NpxRequest, tree: Tree): Promise<boolean> =>
  (await isComplete(tree)) && !("reason" in (await locate(tree, request)));

function npmRun(
  { request, target, place, npm, node, options }: Resolution,
  flags: readonly string[],
  { progress, signal }: Omit<Install, "key">,
): Promise<NpmAnswer | Declined> {
  const { limits = LIMITS, onSpawn, onExit } = options;
  const beside = place.project ? [] : [NO_WORKSPACES];
  return runNpm({
    npm: { program: npm, args: request.npm.args },
    flags: [...beside, ...flags],
    node,
    env: target.env,
    cwd: place.cwd,
    packages: request.packages.map(({ raw }) => raw),
    limits,
    progress,
    signal,
    onSpawn,
    onExit,
  });
}

const NPX_CACHE_VERSION = 1;
const MAX_ENTRIES = 500;
/** The clocks of two machines that share a home folder may differ by this much. */
const CLOCK_SKEW_MS = 60_000;

interface NpxCacheEntry extends NpmFacts {
  /** As the command line writes them; for people who read the file. */
  packages: string[];
  /** The tree from which npx takes them. */
  from: Tree["kind"];
  /** When npm was asked, in milliseconds since 1970. */
  checkedAt: number;
}

type Entries = Record<string, NpxCacheEntry>;

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

async function readFresh(file: string, now: number): Promise<Entries> {
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

type ShareTask<T> = (
  key: string,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

interface OpenTask<T> {
  outcome: Promise<T>;
  controller: AbortController;
  users: number;
}

/** A caller whose signal is aborted rejects with the signal's reason; the last caller only when the task is over. */
export function createTaskSharing<T>(): ShareTask<T> {
  const open = new Map<string, OpenTask<T>>();

  const start = (key: string, task: (signal: AbortSignal) => Promise<T>): OpenTask<T> => {
    const controller = new AbortController();
    const started: OpenTask<T> = { outcome: task(controller.signal), controller, users: 0 };
    const close = (): void => {
      if (open.get(key) === started) open.delete(key);
    };
    started.outcome.then(close, close);
    open.set(key, started);
    return started;
  };

  return async (key, signal, task) => {
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
