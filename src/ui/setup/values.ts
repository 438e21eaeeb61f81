/**
 * Values that an entry leaves open: the key's place in the example of a README, a question of VS Code (`${input:...}`), a
 * variable that is not set. Asks for each where it is, and writes that place into the entry. A value that is typed goes
 * into a file that only the user can read, never into mcp.json.
 */

import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { serverName } from "../../report/server-name.ts";
import { knownServer } from "../../shared/known-servers.ts";
import type { ServerEntry } from "../../shared/protocol/person.ts";
import { isObject } from "../../shared/protocol/values.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { type Ask, choose, until } from "./dialog.ts";
import { COMMAND, command, VARIABLE, variable } from "./key.ts";

/** An example's words in the place of a value. */
const PLACEHOLDER =
  /^(?:<[^<>]{1,60}>|\[[^[\]]{1,60}\]|(?:your|my|insert|replace|enter|paste|add)[-_ ].{1,60}|x{3,}|\*{3,}|\.{3}|(?:api[-_ ]?)?key[-_ ]here|changeme|todo)$/i;
const INPUT = /\$\{input:([^{}]{1,60})\}/;
const UNSET = /\$\{(?:env:)?([A-Za-z_]\w{0,99})\}/g;
/** More are left as they are: nobody answers so many questions. */
const MOST = 8;
const NAME_CHARS = 60;

export interface OpenValue {
  /** Where it stands: `env` or `headers` and the name there, or `bearerTokenEnv`. */
  under: "env" | "headers" | "bearerTokenEnv";
  key: string;
  /** The text around the value, for example `Bearer `. */
  before: string;
  /** What a person reads of it. */
  why: string;
}

/** `GITHUB-Token` -> `GITHUB_TOKEN`. */
const asVariable = (text: string): string =>
  text
    .replace(/[^A-Za-z0-9]+/g, "_")
    .replace(/^(\d)/, "_$1")
    .toUpperCase()
    .slice(0, NAME_CHARS);

function openIn(
  text: unknown,
  at: Pick<OpenValue, "under" | "key">,
  env: NodeJS.ProcessEnv,
): OpenValue | undefined {
  if (typeof text !== "string" || text.startsWith("!")) return undefined;
  const [before = ""] = /^(?:Bearer|Token|Basic) +/i.exec(text) ?? [];
  const value = text.slice(before.length).trim();
  const input = INPUT.exec(value)?.[1];
  if (input !== undefined) return { ...at, before, why: `asks for ${oneLine(input, NAME_CHARS)}` };
  if (PLACEHOLDER.test(value)) return { ...at, before, why: "is an example, not a value" };
  for (const [, name = ""] of value.matchAll(UNSET)) {
    if (env[name] === undefined)
      return { ...at, before, why: `needs ${name}, which is not set where Pi runs` };
  }
  return undefined;
}

/** The values of the entry that nobody has given yet. */
export function openValues(entry: ServerEntry, env: NodeJS.ProcessEnv): OpenValue[] {
  const below = (under: "env" | "headers"): OpenValue[] =>
    Object.entries(isObject(entry[under]) ? entry[under] : {}).flatMap(
      ([key, text]) => openIn(text, { under, key }, env) ?? [],
    );
  const { bearerTokenEnv: token } = entry;
  const unset = typeof token === "string" && env[token] === undefined;
  const bearer: OpenValue[] = unset
    ? [
        {
          under: "bearerTokenEnv",
          key: token,
          before: "",
          why: `needs ${token}, which is not set where Pi runs`,
        },
      ]
    : [];
  return [...below("env"), ...below("headers"), ...bearer].slice(0, MOST);
}

/** The entry with the value's place; `written`: `${NAME}` or `!command`. */
function withValue(entry: ServerEntry, { under, key, before }: OpenValue, written: string): ServerEntry {
  if (under === "bearerTokenEnv") {
    const { bearerTokenEnv: _, ...rest } = entry;
    return { ...rest, bearerToken: written };
  }
  const values = isObject(entry[under]) ? entry[under] : {};
  const isToken = under === "headers" && key.toLowerCase() === "authorization" && /^bearer/i.test(before);
  if (!isToken) return { ...entry, [under]: { ...values, [key]: before + written } };
  // A command is a whole value: the scheme is not a part of it.
  const { [key]: _, ...others } = values;
  const { headers: __, ...rest } = entry;
  return { ...rest, ...(Object.keys(others).length > 0 ? { headers: others } : {}), bearerToken: written };
}

const TYPE = "I type it now: it is kept in a file that only I can read";
const LEAVE = "Leave it as it is";

interface Wish {
  server: string;
  open: OpenValue;
}

/** `${NAME}` or `!command`; undefined: nothing was given. */
async function placeOf(ctx: PiContext, { server, open }: Wish, ask: Ask): Promise<string | undefined> {
  const known = knownServer(server);
  const from =
    known?.needs && "from" in known.needs && open.why.includes(known.needs.variable)
      ? `\nIt is made at ${known.needs.from}`
      : "";
  const what =
    open.under === "bearerTokenEnv" ? "The token" : `${open.under}.${oneLine(open.key, NAME_CHARS)}`;
  // A whole command cannot stand behind another text, except for a token, which has a key of its own.
  const isWhole = open.before === "" || /^bearer/i.test(open.before);
  const choices = isWhole ? [VARIABLE, TYPE, COMMAND, LEAVE] : [VARIABLE, LEAVE];
  const title = `${what} of ${serverName(server)} ${open.why}.${from}\nWhere is the value? It is not written into mcp.json.`;
  const choice = await choose(ctx, title, choices);
  if (choice === VARIABLE) {
    const source = await variable(ctx, asVariable(open.key));
    return source && "variable" in source ? `\u0024{${source.variable}}` : undefined;
  }
  if (choice === COMMAND) {
    const source = await command(ctx);
    return source && "command" in source ? `!${source.command}` : undefined;
  }
  if (choice !== TYPE) return undefined;
  const value = await until(
    ctx,
    [`The value of ${oneLine(open.key, NAME_CHARS)}. Escape: none.`, ""],
    (text) => (text === "" ? { problem: "Type the value." } : { value: text }),
  );
  if (value === undefined) return undefined;
  const kept = await ask("keepValue", { server, name: open.key, value });
  notify(ctx, `The value is kept in ${kept.file}, which only you can read.`, "info");
  return kept.written;
}

const WITHOUT = "Without a key";
const WITH = "With a key";

/** The entry of a known server with the key that it can do without, if the person has one. */
async function withOptional(
  ctx: PiContext,
  name: string,
  entry: ServerEntry,
  ask: Ask,
): Promise<ServerEntry> {
  const known = knownServer(name);
  const needs = known && known.entry.url === entry.url ? known.needs : undefined;
  if (!needs || !("optionalHeader" in needs) || needs.optionalHeader === undefined || entry.headers)
    return entry;
  const title = `${name} works without a key, within narrower limits. One is made at ${needs.from}`;
  if ((await choose(ctx, title, [WITHOUT, WITH])) !== WITH) return entry;
  const open: OpenValue = { under: "headers", key: needs.optionalHeader, before: "", why: "takes your key" };
  const written = await placeOf(ctx, { server: name, open }, ask);
  return written === undefined ? entry : withValue(entry, open, written);
}

/** The entry with the places of the values that the person has named. */
export async function askValues(
  ctx: PiContext,
  { name, entry }: { name: string; entry: ServerEntry },
  ask: Ask,
): Promise<ServerEntry> {
  if (!ctx.hasUI) return entry;
  let filled = await withOptional(ctx, name, entry, ask);
  for (const open of openValues(entry, process.env)) {
    const written = await placeOf(ctx, { server: name, open }, ask);
    if (written !== undefined) filled = withValue(filled, open, written);
  }
  return filled;
}

const WANTED =
  /\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b[^\n]{0,60}?\b(?:required|missing|not set|unset|not found|undefined|must be|not provided)\b|\b(?:missing|set|provide|requires?|no)\b[^\n]{0,40}?\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b/;

/** The variable that a local server says it lacks, as in "API_KEY is required"; undefined: it says nothing of the kind. */
export function wantedVariable(entry: ServerEntry, message: string): string | undefined {
  if (typeof entry.command !== "string") return undefined;
  const found = WANTED.exec(message.slice(0, 10_000));
  const name = found?.[1] ?? found?.[2];
  return name === undefined || name.startsWith("npm_") || name.startsWith("ERR_") ? undefined : name;
}

/** The entry with a place for that variable; undefined: the person gave none. */
export async function askVariable(
  ctx: PiContext,
  { name, entry, wanted }: { name: string; entry: ServerEntry; wanted: string },
  ask: Ask,
): Promise<ServerEntry | undefined> {
  const open: OpenValue = { under: "env", key: wanted, before: "", why: "is what the server asks for" };
  const written = await placeOf(ctx, { server: name, open }, ask);
  return written === undefined ? undefined : withValue(entry, open, written);
}
