/**
 * Turns `npx ...` and `npm exec ...` into the binary that they would run, so that no npm stays as the
 * server's parent. Reads as the order in which npx itself looks. Any doubt ends at the original command.
 * Called by connect-stdio; only this module writes `mcp-npx-cache.json`.
 */
import { messageOf } from "../../../src/protocol/errors.ts";
import { LIMITS } from "../../../src/protocol/limits.ts";
import { type NpxRequest, parseNpxCommand } from "./command.ts";
import {
  decisiveSetting,
  type Env,
  environmentKey,
  findCommand,
  mergedEnv,
  pathFolders,
} from "./environment.ts";
import { findNode, launchOf, type NpxLaunch } from "./launch.ts";
import { fitsShell, type NpmAnswer, runNpm } from "./npm-run.ts";
import { type NpxCacheEntry, readNpxEntry, writeNpxEntry } from "./npx-cache.ts";
import { type Project, readProject } from "./project.ts";
import { createTaskSharing } from "./shared-task.ts";
import {
  chooseTree,
  type Declined,
  isComplete,
  locate,
  type NpmFacts,
  type Tree,
  treeInProject,
} from "./tree.ts";

export type { NpxLaunch };

export interface NpxTarget {
  command: string;
  args: readonly string[];
  /** Of the definition, over the process's own. */
  env: Record<string, string>;
  cwd: string;
}

export interface NpxOptions {
  /** `mcp-npx-cache.json`. */
  cacheFile: string;
  signal: AbortSignal;
  /** One line about why npx itself is run. */
  onNote: (note: string) => void;
  /** npm runs, and no longer runs: so that main can end it. */
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  /** Milliseconds since 1970. */
  now?: () => number;
  /** Of one run of npm. */
  timeoutMs?: number;
}

/** What every step reads. */
interface Resolution {
  request: NpxRequest;
  project: Project;
  target: NpxTarget;
  env: Env;
  /** Runs inside npm. */
  node: string;
  environment: string;
  options: NpxOptions;
}

const shareAsking = createTaskSharing<NpmAnswer | Declined>();
const shareInstalling = createTaskSharing<NpmFacts | Declined>();

/**
 * Undefined: use the original command. Rejects with the signal's reason where it is aborted, and then
 * nothing of it runs; otherwise it never rejects.
 */
export async function resolveNpx(target: NpxTarget, options: NpxOptions): Promise<NpxLaunch | undefined> {
  const parsed = parseNpxCommand(target.command, target.args);
  if (parsed.kind === "other") return undefined;
  try {
    const outcome = parsed.kind === "unsure" ? parsed : await resolve(parsed.request, target, options);
    if (!("reason" in outcome)) return outcome;
    options.onNote(`is started through npm itself: ${outcome.reason}`);
  } catch (error) {
    options.signal.throwIfAborted();
    options.onNote(`is started through npm itself: ${messageOf(error)}`);
  }
  return undefined;
}

async function resolve(
  request: NpxRequest,
  target: NpxTarget,
  options: NpxOptions,
): Promise<NpxLaunch | Declined> {
  const env = mergedEnv(target.env);
  const setting = decisiveSetting(env);
  if (setting !== undefined) return { reason: `${setting} is set` };
  const project = await readProject(target.cwd);
  if ("reason" in project) return project;
  const npm = await findCommand(request.npm.command, { folders: pathFolders(env), cwd: target.cwd });
  const node = await findNode(pathFolders(env), target.cwd);
  if (npm === undefined || node === undefined) return { reason: "npm or node is not on the PATH" };
  if (!fitsShell(node)) return { reason: `a shell could misread ${node}` };
  const environment = await environmentKey({ env, programs: [npm, node], projectPrefix: project.prefix });

  const local = await treeInProject(request, project);
  if (local && "reason" in local) return local;
  const resolution = { request, project, target, env, node, environment, options };
  const tree = await installedTree(resolution);
  if ("reason" in tree) return tree;
  const binary = await locate(tree, request);
  if ("reason" in binary) return binary;
  const { cwd } = target;
  return launchOf(binary, { env, cwd, binFolders: project.binFolders, args: request.args });
}

/** One run of npm for all who want these packages in this environment at once. */
async function installedTree(resolution: Resolution): Promise<Tree | Declined> {
  const { request, environment, options } = resolution;
  const packages = request.packages.map(({ raw }) => raw);
  const key = [environment.slice(0, 32), request.bin ?? "", ...packages].join(" ");
  const facts = await shareInstalling(key, options.signal, (signal) => install(resolution, key, signal));
  return "reason" in facts ? facts : chooseTree(request, resolution.project, facts);
}

async function install(
  resolution: Resolution,
  key: string,
  signal: AbortSignal,
): Promise<NpmFacts | Declined> {
  const { request, project, environment, node, options } = resolution;
  const now = options.now ?? Date.now;
  const known = await readNpxEntry(options.cacheFile, key, now());
  if (known && (await isStillThere(resolution, known))) return known;

  const answer = await shareAsking(`${environment} ${node} ${project.prefix}`, signal, (shared) =>
    npmRun(resolution, [], shared),
  );
  if ("reason" in answer) return answer;
  if (answer.projectPrefix !== project.prefix) {
    return { reason: `npm takes ${answer.projectPrefix} for the project` };
  }
  const tree = await chooseTree(request, project, answer);
  if ("reason" in tree) return tree;
  if (tree.kind === "cache" && !(await isUpToDate(request, tree))) {
    const flags = request.packages.map(({ raw }) => `--package=${raw}`);
    const installed = await npmRun(resolution, request.yes ? ["--yes", ...flags] : flags, signal);
    if ("reason" in installed) return installed;
  }
  const { cacheDir, globalPrefix } = answer;
  const packages = request.packages.map(({ raw }) => raw);
  const entry = { packages, from: tree.kind, cacheDir, globalPrefix, checkedAt: now() };
  await writeNpxEntry(options.cacheFile, key, entry).catch((error) => {
    options.onNote(`mcp-npx-cache.json could not be written: ${messageOf(error)}`);
  });
  return entry;
}

/** Whether an entry still stands for something that can be started, in the place it was found in. */
async function isStillThere({ request, project }: Resolution, known: NpxCacheEntry): Promise<boolean> {
  const tree = await chooseTree(request, project, known);
  return !("reason" in tree) && tree.kind === known.from && !("reason" in (await locate(tree, request)));
}

/** npx asks the registry for what is no exact version; npm's cache alone cannot tell. */
const isUpToDate = async (request: NpxRequest, tree: Tree): Promise<boolean> =>
  request.packages.every(({ kind }) => kind === "version") &&
  (await isComplete(tree)) &&
  !("reason" in (await locate(tree, request)));

function npmRun(
  { request, target, env, node, options }: Resolution,
  flags: readonly string[],
  signal: AbortSignal,
): Promise<NpmAnswer | Declined> {
  const { npm } = request;
  const { timeoutMs = LIMITS.npxRunMs, onSpawn, onExit } = options;
  const nodeOptions = env.NODE_OPTIONS;
  return runNpm({
    npm,
    flags,
    node,
    env: target.env,
    nodeOptions,
    cwd: target.cwd,
    timeoutMs,
    signal,
    onSpawn,
    onExit,
  });
}
