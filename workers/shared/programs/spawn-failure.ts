/** Says why a server could not be started: because of its command, its working directory, or the system's error. */
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { isFolder } from "../files/is-folder.ts";

export interface FailedSpawn {
  server: string;
  /** The command as the definition writes it. */
  command: string;
  cwd: string;
  /** Error of the system; undefined if the search for the command found nothing. */
  error?: unknown;
}

/** ENOENT means that either the command or the folder does not exist. */
async function describe({ server, command, cwd, error }: FailedSpawn): Promise<string> {
  if (error !== undefined && (error as NodeJS.ErrnoException).code !== "ENOENT") {
    return `${server}: "${command}" could not be started: ${messageOf(error)}.`;
  }
  return (await isFolder(cwd))
    ? `${server}: the command "${command}" was not found.`
    : `${server}: its working directory ${cwd} does not exist.`;
}

/** The error `spawn_failed` with its remedy. */
export async function spawnFailure(failed: FailedSpawn): Promise<ThreadsError> {
  return new ThreadsError("spawn_failed", await describe(failed), {
    remedy:
      "Check command, cwd and PATH in mcp.json. A program of the working directory needs its path, such as ./server.",
    data: { server: failed.server },
  });
}
