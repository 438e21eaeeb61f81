/** Which file of ours a server is taken out of. Pure. */
import { namesIn } from "../config/edit/entries.ts";
import { parseConfigText } from "../config/files/files.ts";
import type { ConfigSource } from "../config/files/sources.ts";

export interface OwnFile {
  source: ConfigSource;
  /** Undefined: there is no such file, or it cannot be read. */
  text: string | undefined;
}

/** Whether the text holds a whole entry of this name, and no mere override. */
const defines = ({ source, text = "" }: OwnFile, name: string): boolean =>
  parseConfigText(text, source).entries.some(
    (entry) => entry.kind === "server" && entry.definition.name === name,
  );

/**
 * The user's own file comes before one of the project, which the person may not even have looked at. `own`: lowest
 * precedence first. `wanted`: the file that the person was shown. `inEffect`: the file of the server that counts now.
 * Undefined: no file of ours names the server. An entry with a mistake defines no server, and can be removed all the same.
 */
export function removedFrom(
  name: string,
  own: readonly OwnFile[],
  { wanted, inEffect }: { wanted?: string | undefined; inEffect?: string | undefined },
): string | undefined {
  const naming = own.filter(({ text }) => namesIn(text).has(name));
  const isNamed = (file: string | undefined) => naming.some(({ source }) => source.file === file);
  if (isNamed(wanted)) return wanted;
  const users = naming.findLast((file) => file.source.origin === "user" && defines(file, name));
  if (users) return users.source.file;
  return isNamed(inEffect) ? inEffect : naming.at(-1)?.source.file;
}
