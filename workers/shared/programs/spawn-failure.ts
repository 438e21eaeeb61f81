/** Says why a server could not be started: its command, its working directory, or what the system says. */
import { stat } from "node:fs/promises";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";

export interface FailedSpawn {
  server: string;
  /** As the definition names it. */
  command: string;
  cwd: string;
  /** Of the system; undefined where the search for the command found nothing. */
  error?: unknown;
}

/** ENOENT means either: the command or the folder is not there. */
async function describe({ server, command, cwd, error }: FailedSpawn): Promise<string> {
  if (error !== undefined && (error as NodeJS.ErrnoException).code !== "ENOENT") {
    return `${server}: "${command}" could not be started: ${messageOf(error)}.`;
  }
  const hasFolder = await stat(cwd).then(
    (found) => found.isDirectory(),
    () => false,
  );
  return hasFolder
    ? `${server}: the command "${command}" was not found.`
    : `${server}: its working directory ${cwd} does not exist.`;
}

/** `spawn_failed`. */
export async function spawnFailure(failed: FailedSpawn): Promise<ThreadsError> {
  return new ThreadsError("spawn_failed", await describe(failed), {
    remedy:
      "Check command, cwd and PATH in mcp.json. A program of the working directory needs its path, such as ./server.",
    data: { server: failed.server },
  });
}
