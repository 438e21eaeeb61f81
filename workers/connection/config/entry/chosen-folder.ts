/**
 * Whether the author of a definition chose the folder of a server. Then the folder is the same wherever Pi runs, and
 * its files are those that the author wants. Otherwise it is the folder in which Pi runs, or depends on it. Pure.
 */
import { isWithin } from "../../../shared/programs/find-program.ts";
import type { ServerDefinition } from "./definition.ts";

/** A path from the root or the home folder, without a variable or a command in it. */
const WRITTEN_OUT = /^(?:\/|~[/\\]|~$|[a-z]:[\\/])(?:(?!\$\{|\$env:|\{env:).)*$/is;

type Chosen = Pick<ServerDefinition, "origin" | "project" | "target">;

export function isChosenFolder(
  { origin, project, target }: Chosen,
  where: { session: string; folder: string; platform: NodeJS.Platform },
): boolean {
  const written = target.kind === "stdio" ? target.cwd : undefined;
  // A file of the project may have set this folder.
  if (written === undefined || project) return false;
  // A path from an extension, or from a file of another program, may be the folder in which Pi runs.
  if (origin === "user" && WRITTEN_OUT.test(written)) return true;
  const { session, folder, platform } = where;
  return !isWithin(folder, session, platform) && !isWithin(session, folder, platform);
}
