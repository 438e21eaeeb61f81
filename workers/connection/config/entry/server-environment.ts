/** The environment of a server's process, and whether the folder in which Pi runs may decide anything in it. Pure. */
import { childEnvironment, type Env } from "../../../shared/programs/find-program.ts";
import type { ServerDefinition } from "./definition.ts";

export interface EnvironmentFacts {
  /** Environment of this process. */
  base: Env;
  /** The session's folder. */
  session: string;
  home: string;
  platform: NodeJS.Platform;
  /** Gets the entries of PATH that are left out. Not called if there are none. */
  onLeftOut?: (entries: string[]) => void;
}

/** `own`: the variables of the definition, filled in. */
export const serverEnvironment = (
  { definedByProject }: Pick<ServerDefinition, "definedByProject">,
  own: Env,
  { base, session, home, platform, onLeftOut }: EnvironmentFacts,
): Record<string, string> =>
  childEnvironment({
    base,
    own,
    platform,
    independentOf: definedByProject ? undefined : { cwd: session, home },
    ...(onLeftOut ? { onLeftOut } : {}),
  });
