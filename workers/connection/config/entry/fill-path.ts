/**
 * Variables and a leading `~/` of a path, or a literal `~/` that is written `~~/`. The home folder is filled in first:
 * a variable's value that begins with `~/` means itself. Pure.
 */

import { expandHome } from "./home.ts";
import { type Environment, escapeVariables, interpolate } from "./interpolate.ts";

export interface PathFacts {
  env: Environment;
  home: string;
  platform?: NodeJS.Platform;
}

export function fillPath(
  text: string,
  { env, home, platform = process.platform }: PathFacts,
): ReturnType<typeof interpolate> {
  const withHome = /^~~+($|[/\\])/.test(text)
    ? text.slice(1)
    : expandHome(text, { home: escapeVariables(home), platform });
  return interpolate(withHome, env, platform);
}
