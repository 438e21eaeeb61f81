/**
 * Puts the launch of a server into its room. Fails closed: whatever is missing, the server does not start. Loaded for servers
 * with a sandbox only.
 */
import { basename } from "node:path";
import type { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { findHere, SYSTEM_FOLDERS } from "../../shared/programs/find-program.ts";
import { type Launch, printedBy } from "../../shared/programs/processes.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Sandbox } from "../config/entry/sandbox.ts";
import { bwrapFailure, linuxLaunch } from "./linux.ts";
import { macosLaunch } from "./macos.ts";
import { noRoom, type Plan, planRoom, type RoomPlace, roomEnvironment } from "./plan.ts";

/** Programs that have the server started by a service outside of any room. */
const BY_A_SERVICE =
  /^(?:docker|podman|nerdctl|container|finch|lima|limactl|colima|systemd-run|flatpak|snap)(?:\.exe)?$/i;

/** `PATH` of the system, also where Nix and Homebrew put programs. No folder of a project, and none of the user's choice. */
const BWRAP_PATH = `${SYSTEM_FOLDERS}:/usr/local/bin:/run/current-system/sw/bin:/run/wrappers/bin:/home/linuxbrew/.linuxbrew/bin`;

export interface RoomFacts extends RoomPlace {
  /** The variables of the server's entry. */
  own: Readonly<Record<string, string>>;
}

/** Throws `spawn_failed` if there can be no room. */
export async function roomLaunch(
  launch: Launch,
  definition: ServerDefinition,
  room: Sandbox,
  facts: RoomFacts,
): Promise<{ launch: Launch; plan: Plan }> {
  const { name } = definition;
  const command = definition.target.kind === "stdio" ? definition.target.command : "";
  for (const program of [basename(command), basename(launch.program)]) {
    if (!BY_A_SERVICE.test(program)) continue;
    const what = `${program} has the server started by a service, outside of any sandbox`;
    throw noRoom(name, what, 'Take "sandbox" out, or write "sandbox": false into its entry.');
  }
  const { platform } = process;
  if (platform === "linux") {
    const bwrap = await findHere("bwrap", { env: { PATH: BWRAP_PATH }, cwd: "/" });
    if (bwrap === undefined)
      throw noRoom(name, "bwrap is missing", "Install the package bubblewrap, or take sandbox out.");
    const plan = await planRoom(room, definition, launch, facts);
    const env = roomEnvironment(launch.env, facts.own, plan);
    return { launch: linuxLaunch({ ...launch, env }, plan, bwrap), plan };
  }
  if (platform === "darwin") {
    const plan = await planRoom(room, definition, launch, facts);
    const env = roomEnvironment(launch.env, facts.own, plan);
    return { launch: macosLaunch({ ...launch, env }, plan), plan };
  }
  throw noRoom(
    name,
    `there is none for this system (${platform})`,
    "Sandboxes work on Linux and macOS. Take sandbox out, or run Pi in WSL.",
  );
}

/** The error behind what the room's program wrote to stderr; undefined: the room was made. */
export function explainRoom(server: string, stderr: string): ThreadsError | undefined {
  const found = bwrapFailure(stderr);
  return found && noRoom(server, `bwrap: ${found.what}`, found.remedy);
}

const PRINTED_BYTES = 64 * 1024;
const TRY_MS = 3_000;

/** Tries the room of a launch without starting its program. Rejects with `spawn_failed` if there can be none. */
export async function tryRoom(
  made: Launch,
  of: Pick<Launch, "args">,
  server: string,
  signal: AbortSignal,
): Promise<void> {
  const around = made.args.slice(0, made.args.length - of.args.length - 1);
  const shell = { ...made, args: [...around, "/bin/sh", "-c", "echo done"] };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TRY_MS)]);
  const { stdout, stderr } = await printedBy(shell, PRINTED_BYTES, limit);
  if (stdout !== "done\n")
    throw (
      explainRoom(server, stderr) ?? noRoom(server, "a shell in it did not answer", "Run doctor to see more.")
    );
}
