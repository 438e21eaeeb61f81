/**
 * Fills in the variables and a leading `~/` of a path; `~~/` stands for a literal `~/`. The home folder is filled in
 * first, so that the value of a variable that begins with `~/` stays as it is. Pure.
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
