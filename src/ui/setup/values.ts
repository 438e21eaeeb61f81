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
import { isKeyAsVariable, variableText } from "../../shared/text/key-shape.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { type Ask, ATTEMPTS, choose } from "./dialog.ts";
import { COMMAND, command, TYPE, typed, VARIABLE, variable } from "./key.ts";

/** An example's words in the place of a value. */
const PLACEHOLDER =
  /^(?:<[^<>]{1,60}>|\[[^[\]]{1,60}\]|(?:your|my|insert|replace|enter|paste|add)[-_ ].{1,60}|x{3,}|\*{3,}|\.{3}|(?:api[-_ ]?)?key[-_ ]here|changeme|todo)$/i;
/** A question of VS Code, or a variable; a doubled `$` is a text. */
const OPEN = /(?<!\$)\$\{(?:input:([^{}]{1,60})|(?:env:)?([A-Za-z_]\w{0,99}))\}/g;
/** More are left as they are: nobody answers so many questions. */
const MOST = 8;
const NAME_CHARS = 60;

export interface OpenValue {
  /** Where it stands: `env` or `headers` and the name there, or `bearerTokenEnv`. */
  under: "env" | "headers" | "bearerTokenEnv";
  key: string;
  /** The open part of the value: its text, and a name for a variable in its place. */
  text: string;
  name: string;
  /** `value`: nothing stands around the part; `token`: the scheme of a bearer token alone. */
  fills: "value" | "token" | "part";
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

const SCHEME = /^(?:Bearer|Token|Basic) +/i;

/** What this part of the text fills. */
function fillsOf(
  text: string,
  part: string,
  { under, key }: Pick<OpenValue, "under" | "key">,
): OpenValue["fills"] {
  const [before = "", ...after] = text.split(part);
  if (after.join(part).trim() !== "") return "part";
  if (before.trim() === "") return "value";
  const isToken = under === "headers" && key.toLowerCase() === "authorization" && /^bearer +$/i.test(before);
  return isToken ? "token" : "part";
}

/** The open parts of a value, each once however often it stands there. */
function openIn(text: unknown, at: Pick<OpenValue, "under" | "key">, env: NodeJS.ProcessEnv): OpenValue[] {
  if (typeof text !== "string" || text.startsWith("!")) return [];
  const part = (found: string, name: string, why: string): OpenValue => {
    const fills = fillsOf(text, found, at);
    return { ...at, text: found, name: asVariable(fills === "part" ? name : at.key), fills, why };
  };
  const parts = new Map<string, OpenValue>();
  for (const [whole, input, name = ""] of text.matchAll(OPEN)) {
    if (input !== undefined) parts.set(whole, part(whole, input, `asks for ${oneLine(input, NAME_CHARS)}`));
    else if (env[name] === undefined)
      parts.set(whole, part(whole, name, `needs ${variableText(name)}, which is not set where Pi runs`));
  }
  if (parts.size > 0) return [...parts.values()];
  const value = text.replace(SCHEME, "").trim();
  return PLACEHOLDER.test(value) ? [part(value, at.key, "is an example, not a value")] : [];
}

const wholeValue = (under: OpenValue["under"], key: string, why: string): OpenValue => ({
  under,
  key,
  text: "",
  name: asVariable(key),
  fills: "value",
  why,
});

/** The values of the entry that nobody has given yet. */
export function openValues(entry: ServerEntry, env: NodeJS.ProcessEnv): OpenValue[] {
  const below = (under: "env" | "headers"): OpenValue[] =>
    Object.entries(isObject(entry[under]) ? entry[under] : {}).flatMap(([key, text]) =>
      openIn(text, { under, key }, env),
    );
  const { bearerTokenEnv: token } = entry;
  // A key in the place of the name is a mistake, which the worker tells.
  const unset = typeof token === "string" && env[token] === undefined && !isKeyAsVariable(token);
  const bearer = unset
    ? [wholeValue("bearerTokenEnv", token, `needs ${token}, which is not set where Pi runs`)]
    : [];
  return [...below("env"), ...below("headers"), ...bearer].slice(0, MOST);
}

/** The entry with the value's place; `written`: `${NAME}` or `!command`. */
function withValue(entry: ServerEntry, { under, key, text, fills }: OpenValue, written: string): ServerEntry {
  if (under === "bearerTokenEnv") {
    const { bearerTokenEnv: _, ...rest } = entry;
    return { ...rest, bearerToken: written };
  }
  const values = isObject(entry[under]) ? entry[under] : {};
  if (fills !== "token") {
    const value = fills === "value" ? written : String(values[key]).replaceAll(text, () => written);
    return { ...entry, [under]: { ...values, [key]: value } };
  }
  // A command is a whole value: the scheme is not a part of it.
  const { [key]: _, ...others } = values;
  const { headers: __, ...rest } = entry;
  return { ...rest, ...(Object.keys(others).length > 0 ? { headers: others } : {}), bearerToken: written };
}

const LEAVE = "Leave it as it is";

interface Wish {
  server: string;
  open: OpenValue;
}

/** `written`: `${NAME}` or `!command`; absent: the value stays as it is. */
interface Place {
  written?: string;
}

/** Undefined: the person leaves the dialog. Escape within a question about a place goes back to the choice of places. */
async function placeOf(ctx: PiContext, wish: Wish, ask: Ask): Promise<Place | undefined> {
  const { server, open } = wish;
  const known = knownServer(server);
  const from =
    known?.needs && "from" in known.needs && open.why.includes(known.needs.variable)
      ? `\nIt is made at ${known.needs.from}`
      : "";
  const what =
    open.under === "bearerTokenEnv" ? "The token" : `${open.under}.${oneLine(open.key, NAME_CHARS)}`;
  // A command is a whole value, so it cannot stand within a text; a token has a key of its own.
  const choices = open.fills === "part" ? [VARIABLE, LEAVE] : [VARIABLE, TYPE, COMMAND, LEAVE];
  const title = `${what} of ${serverName(server)} ${open.why}.${from}\nWhere is the value? It is not written into mcp.json.`;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const choice = await choose(ctx, title, choices);
    if (choice === undefined || choice === LEAVE) return choice && {};
    const written = await (choice === TYPE ? kept(ctx, wish, ask) : named(ctx, choice, open));
    if (written !== undefined) return { written };
  }
  return undefined;
}

async function named(ctx: PiContext, choice: string, open: OpenValue): Promise<string | undefined> {
  const source = await (choice === VARIABLE ? variable(ctx, open.name) : command(ctx));
  if (!source) return undefined;
  return "variable" in source ? `\u0024{${source.variable}}` : `!${source.command}`;
}

async function kept(ctx: PiContext, { server, open }: Wish, ask: Ask): Promise<string | undefined> {
  const value = await typed(ctx, `The value of ${oneLine(open.key, NAME_CHARS)}`, "back");
  if (value === undefined) return undefined;
  const { file, written } = await ask("keepValue", { server, name: open.key, value });
  notify(ctx, `The value is kept in ${file}, which only you can read.`, "info");
  return written;
}

const WITHOUT = "Without a key";
const WITH = "With a key";

/** The entry of a known server with the key that it can do without, if the person has one; undefined: the person leaves. */
async function withOptional(
  ctx: PiContext,
  name: string,
  entry: ServerEntry,
  ask: Ask,
): Promise<ServerEntry | undefined> {
  const known = knownServer(name);
  const needs = known && known.entry.url === entry.url ? known.needs : undefined;
  if (!needs || !("optionalHeader" in needs) || needs.optionalHeader === undefined || entry.headers)
    return entry;
  const title = `${name} works without a key, within narrower limits. One is made at ${needs.from}`;
  const choice = await choose(ctx, title, [WITHOUT, WITH]);
  if (choice !== WITH) return choice && entry;
  const open = wholeValue("headers", needs.optionalHeader, "takes your key");
  return placed(ctx, { name, entry, open }, ask);
}

/** The entry with the place of the value, if the person names one; undefined: the person leaves. */
async function placed(
  ctx: PiContext,
  { name, entry, open }: { name: string; entry: ServerEntry; open: OpenValue },
  ask: Ask,
): Promise<ServerEntry | undefined> {
  const place = await placeOf(ctx, { server: name, open }, ask);
  return place?.written === undefined ? place && entry : withValue(entry, open, place.written);
}

/** The entry with the places of the values that the person has named; undefined: the person leaves. */
export async function askValues(
  ctx: PiContext,
  { name, entry }: { name: string; entry: ServerEntry },
  ask: Ask,
): Promise<ServerEntry | undefined> {
  if (!ctx.hasUI) return entry;
  let filled = await withOptional(ctx, name, entry, ask);
  for (const open of openValues(entry, process.env))
    filled = filled && (await placed(ctx, { name, entry: filled, open }, ask));
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
  const open = wholeValue("env", wanted, "is what the server asks for");
  const place = await placeOf(ctx, { server: name, open }, ask);
  return place?.written === undefined ? undefined : withValue(entry, open, place.written);
}
