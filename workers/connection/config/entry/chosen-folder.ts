/**
 * Whether the author of a definition chose the folder of a server: then that folder is the same wherever Pi runs, and
 * what lies there is what the author wants. Otherwise it is the folder in which Pi runs, or depends on it. Pure.
 */

import { isWithin } from "../../../shared/programs/search-path.ts";
import type { ServerDefinition } from "./definition.ts";

/** Written out from the root or the home folder, with no variable and no command in it. */
const WRITTEN_OUT = /^(?:\/|~[/\\]|~$|[a-z]:[\\/])(?:(?!\$\{|\$env:|\{env:).)*$/is;

type Chosen = Pick<ServerDefinition, "origin" | "project" | "target">;

export function isChosenFolder(
  { origin, project, target }: Chosen,
  where: { session: string; folder: string; platform: NodeJS.Platform },
): boolean {
  const written = target.kind === "stdio" ? target.cwd : undefined;
  // A file of the project may have set the folder of a server that it does not define.
  if (written === undefined || project) return false;
  // An extension may give the folder in which Pi runs, and so does a variable in a file of another program.
  if (origin === "user" && WRITTEN_OUT.test(written)) return true;
  const { session, folder, platform } = where;
  return !isWithin(folder, session, platform) && !isWithin(session, folder, platform);
}
