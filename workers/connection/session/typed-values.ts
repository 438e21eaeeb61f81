/**
 * Owns: which values that a person once typed for a server go with a change of our files. Must not: change files of the
 * configuration, or keep values.
 */
import type { RunningConfiguration } from "../config/config.ts";
import { textOf } from "../config/edit/edit.ts";
import { dropValues, keptIn, valuesThere } from "../config/edit/keep-value.ts";
import { configSources } from "../config/files/sources.ts";

type Texts = readonly (string | undefined)[];

/**
 * The texts of all files that may name a value: the user's own ones, and all others, which can lie in a repository. Undefined
 * where one cannot be read, since nobody knows what it names.
 */
async function namingTexts({
  facts,
  state,
}: RunningConfiguration): Promise<{ own: Texts; others: Texts } | undefined> {
  const sources = configSources({ ...facts, configPath: undefined });
  const users = new Set(sources.filter(({ origin }) => origin === "user").map(({ file }) => file));
  const files = [...new Set([...state.files, ...sources.map(({ file }) => file)])];
  const read = (isUsers: boolean): Promise<Texts> =>
    Promise.all(files.filter((file) => users.has(file) === isUsers).map(textOf));
  return Promise.all([read(true), read(false)]).then(
    ([own, others]) => ({ own, others }),
    () => undefined,
  );
}

const namedIn = (texts: Texts, name: string): boolean => texts.some((text) => text?.includes(name));

/** Those of the values that no file names; none where nobody knows that. */
export async function unnamed(running: RunningConfiguration, names: readonly string[]): Promise<string[]> {
  const now = names.length === 0 ? undefined : await namingTexts(running);
  return now ? names.filter((name) => !namedIn([...now.own, ...now.others], name)) : [];
}

/**
 * Makes a change of our files, and removes the values that a person once typed for what the change takes out. One that a
 * project's file named stays: its file in another worktree, on another branch or after an undo names it still.
 */
export async function withoutItsValues<T>(
  running: RunningConfiguration,
  change: () => Promise<T>,
): Promise<{ done: T; values: number; kept: string[] }> {
  const { own, others } = (await namingTexts(running)) ?? { own: [], others: [] };
  const done = await change();
  const free = await unnamed(running, [...new Set(keptIn([...own, ...others]))]);
  const [stays = [], goes = []] = [true, false].map((is) =>
    free.filter((name) => namedIn(others, name) === is),
  );
  const { agentDir } = running.facts;
  return { done, values: await dropValues(agentDir, goes), kept: await valuesThere(agentDir, stays) };
}
