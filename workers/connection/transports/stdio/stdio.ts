/**
 * Connects to a server that runs as a child process. Owns: the command and the environment of that process, and its
 * start. Also decides when the folder in which Pi runs may influence what is started: only if a file of the project
 * defines the server, and never which package npx takes. Must not: know lifecycles.
 */
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { SERVING_VARIABLE } from "../../../../src/shared/process/serving.ts";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { reasonOf } from "../../../shared/files/file-system.ts";
import { makeFolder } from "../../../shared/files/owner.ts";
import { UNUSED_TIMES } from "../../../shared/pace/pace.ts";
import { endsOf, isFile } from "../../../shared/programs/find-program.ts";
import { type Command, launchOf, spawnFailure } from "../../../shared/programs/launch.ts";
import { type Launch, type ServerProcess, spawnServer } from "../../../shared/programs/processes.ts";
import { isChosenFolder, serverEnvironment } from "../../config/entry/cache-identity.ts";
import { isUsersOwn, type ServerDefinition, type StdioTarget } from "../../config/entry/definition.ts";
import { sandboxOf } from "../../config/entry/sandbox.ts";
import { withoutWindow } from "../../hub/window-variables.ts";
import type { Connection, ConnectOptions } from "../../mcp/connection.ts";
import { resolveNpx } from "../../npx/npx.ts";
import { StdioTransport } from "./transport.ts";

/** npm's own folder, for servers whose folder the user did not choose. It lies beside npx's cache file. */
const NPM_FOLDER = "mcp-npm";

const NOTED_ENTRIES = 5;
const NOTED_CHARS = 200;

function describeLeftOut(left: readonly string[]): string {
  const entries = [...new Set(left)];
  const shown = entries.slice(0, NOTED_ENTRIES).map((entry) => JSON.stringify(entry.slice(0, NOTED_CHARS)));
  const more = entries.length > shown.length ? ` and ${entries.length - shown.length} more` : "";
  return `does not get these entries of PATH, which depend on the folder in which Pi runs: ${shown.join(", ")}${more}`;
}

/**
 * Variables that name the session's folder, if the server's `roots` tell it that folder: sessions that share a process have
 * the same roots. Claude Code (code.claude.com/docs/en/mcp, "Add a local stdio server") sets `CLAUDE_PROJECT_DIR` for every
 * local server, and servers look for it; here the entry decides, as about roots. What the entry's own `env` says wins.
 */
function projectVariables({ cwd, roots }: Pick<ConnectOptions, "cwd" | "roots">): Record<string, string> {
  const folder = resolve(cwd);
  const { href } = pathToFileURL(folder);
  return roots?.some(({ uri }) => uri === href) ? { PI_PROJECT_DIR: folder, CLAUDE_PROJECT_DIR: folder } : {};
}

/** A `serve` that another one has started learns that also where sessions share it. */
const servingOf = ({ args }: StdioTarget): Record<string, string> => {
  const serving = process.env[SERVING_VARIABLE];
  return serving !== undefined && args.includes("serve") ? { [SERVING_VARIABLE]: serving } : {};
};

/** The command with the whole environment of its process. */
async function commandOf(target: StdioTarget, options: LaunchOptions): Promise<Command> {
  const { definition, cwd: session, onNote, hub } = options;
  const { platform } = process;
  const cwd = target.cwd ?? session;
  const own = { ...projectVariables(options), ...target.env };
  const home = homedir();
  const env = serverEnvironment({ ...definition, ...target }, own, {
    base: hub ? { ...withoutWindow(process.env), ...servingOf(target) } : process.env,
    session,
    home,
    platform,
    ends: await endsOf(process.env, { cwd: session, home }),
    onLeftOut: (entries) => onNote(describeLeftOut(entries)),
  });
  const isIndependent =
    !definition.definedByProject && !isChosenFolder(definition, { session, folder: cwd, platform });
  return { command: target.command, args: target.args, env, cwd, isIndependent };
}

/** The command without npm as the server's parent, if it is certain what npm would start. */
async function withoutNpm(command: Command, target: StdioTarget, options: LaunchOptions): Promise<Command> {
  const { definition, npxCacheFile, signal } = options;
  // npm runs outside of the sandbox, and does what variables such as NODE_OPTIONS and PATH say: those of a project or a package do
  // not reach it, nor what a project changed in a server of the user.
  const isApart = !isUsersOwn(definition) && sandboxOf(definition.sandbox) !== undefined;
  const asked = isApart
    ? await commandOf({ ...target, env: {} }, { ...options, onNote: () => undefined })
    : command;
  const own = Object.entries(command.env).filter(([name, value]) => asked.env[name] !== value);
  // The person said yes to the published package, which a clone's node_modules or .npmrc would replace unseen.
  const isNeutral = command.isIndependent || definition.definedByProject;
  const neutral = isNeutral ? join(dirname(npxCacheFile), NPM_FOLDER) : undefined;
  try {
    const launch = await resolveNpx(
      { ...asked, neutral },
      { ...options, server: definition.name, cacheFile: npxCacheFile },
    );
    return { ...command, ...launch, env: { ...(launch ?? command).env, ...Object.fromEntries(own) } };
  } catch (error) {
    throw signal.aborted ? stoppedEarly(definition) : error;
  }
}

/** The launch as it is for a server without a sandbox. Throws `spawn_failed` if its room cannot be made. */
async function inRoom(launch: Launch, target: StdioTarget, options: LaunchOptions): Promise<Launch> {
  const { definition, cwd: session, npxCacheFile, configPath } = options;
  const sandbox = sandboxOf(definition.sandbox);
  if (sandbox === undefined) return launch;
  // The room's program would say that the room hides the file.
  if (!(await isFile(launch.program)))
    throw await spawnFailure({ server: definition.name, command: target.command, cwd: launch.cwd });
  const { roomLaunch, tryRoom } = await import("../../room/room.ts");
  const place = { agentDir: dirname(npxCacheFile), session, home: homedir(), configPath, own: target.env };
  const made = await roomLaunch(launch, definition, sandbox, place);
  if (options.triesRoom) await tryRoom(made.launch, launch, definition.name, options.signal);
  return made.launch;
}

/** What of the options a launch needs. */
type LaunchOptions = Pick<
  ConnectOptions,
  | "definition"
  | "cwd"
  | "npxCacheFile"
  | "configPath"
  | "signal"
  | "onNote"
  | "onWait"
  | "onSpawn"
  | "onExit"
  | "roots"
  | "hub"
> & {
  /** Whether a room is tried before it is answered: nobody reads what its program says. */
  triesRoom?: true;
};

/** How the server's process is started, in its room if it has one. Throws `ThreadsError`. */
export async function launchOfServer(target: StdioTarget, options: LaunchOptions): Promise<Launch> {
  const command = await withoutNpm(await commandOf(target, options), target, options);
  return inRoom(await launchOf(command, options.definition.name), target, options);
}

const stoppedEarly = ({ name }: ServerDefinition): ThreadsError =>
  new ThreadsError("cancelled", `${name} was closed before it was started.`);

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * Settles in a turn of the event loop that no other start has. The system needs milliseconds to start a process, and
 * between two starts the worker hears whether the session has ended.
 */
function spawnTurn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => setImmediate());
  return lastTurn;
}

/** How the process of a server is started: by this worker, or by the hub if sessions share the server. */
async function starterOf(launch: Launch, options: ConnectOptions): Promise<() => ServerProcess> {
  const own = (): ServerProcess => spawnServer(launch);
  if (!options.hub) return options.start ?? own;
  const { sharedStarter } = await import("./shared.ts");
  return (await sharedStarter(launch, options, options.hub)) ?? own;
}

/** Loads what a connection needs once its process is starting, and what starts it, which Node compiles in each thread anew. */
export const preload = () => {
  process.getBuiltinModule("node:child_process");
  return import("./handshake.ts");
};
export const preloadShared = () => Promise.all([preload(), import("./shared.ts")]);

/** The folder for data of a plugin's server. Throws `spawn_failed`. */
async function makeDataFolder(folder: string, { name: server }: ServerDefinition): Promise<void> {
  try {
    await makeFolder(folder);
  } catch (error) {
    throw new ThreadsError(
      "spawn_failed",
      `${server}: its folder ${folder} cannot be made: ${reasonOf(error)}.`,
      {
        remedy: "Make the folder, or what is in its place go.",
        data: { server },
      },
    );
  }
}

/** Throws `ThreadsError`; then it has left nothing running. `isAgain`: the hub has gone in the attempt before. */
export async function connectStdio(
  target: StdioTarget,
  options: ConnectOptions,
  isAgain = false,
): Promise<Connection> {
  const { definition, onNote } = options;
  const server = definition.name;
  const data = definition.base?.data;
  if (data !== undefined) await makeDataFolder(data, definition);
  const launch = await launchOfServer(target, options);
  await options.standAside?.();
  await spawnTurn();
  if (options.signal.aborted) throw stoppedEarly(definition);
  // What the handshake needs is loaded while the hub answers.
  if (options.hub) preload().catch(() => undefined);
  const spawn = await starterOf(launch, options);
  if (options.signal.aborted) throw stoppedEarly(definition);
  let last: StdioTransport | undefined;
  const create = (): StdioTransport => {
    last = new StdioTransport({
      ...options,
      server,
      command: target.command,
      cwd: launch.cwd,
      spawn,
      onStderr: definition.debug ? (line) => onNote(`stderr: ${line}`) : undefined,
    });
    return last;
  };
  const first = create();
  // The SDK is loaded while the system starts the process: each takes tens of milliseconds. `shakeHands` reports a failure.
  first.spawn().catch(() => undefined);
  try {
    const { shakeHands } = await preload();
    return await shakeHands(first, create, options);
  } catch (error) {
    // Only if the code could not be loaded does the process still run.
    await first.closeWithin(UNUSED_TIMES);
    // Nothing was called yet, and there is another hub at once.
    if (last?.isLost && !isAgain && !options.signal.aborted) return connectStdio(target, options, true);
    throw error;
  }
}
