/** Where a server's key is: asked, written without the key itself, and tried. A key that is typed gets a file of its own. */

import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { failureText, serverName } from "../../report/server-name.ts";
import type { KeySource } from "../../shared/protocol/person.ts";
import { counted } from "../../shared/text/amounts.ts";
import { isKeyAsVariable } from "../../shared/text/key-shape.ts";
import { type Ask, choose, until } from "./dialog.ts";

export const VARIABLE = "In an environment variable";
export const COMMAND = "A command prints it, for example of a password manager";
export const TYPE = "I type it now: it is kept in a file that only I can read";
const LATER = "Not now";
const BEARER = "As Authorization: Bearer, as most servers take it";
const OTHER = "In another header";
const ANOTHER = "Type another name";
const WRITE_ANYWAY = "Write it, I set it later";

const NAME = /^[A-Za-z_]\w{0,99}$/;
/** RFC 9110, section 5.6.2. */
const HEADER = /^[\w!#$%&'*+.^`|~-]{1,100}$/;
const COMMAND_CHARS = 1_000;

const askFor = <T>(
  ctx: PiContext,
  title: string,
  example: string,
  read: (text: string) => T | undefined,
  not: string,
) =>
  // What was typed is not repeated: it may be the key.
  until(ctx, [title, example], (text) => {
    const value = read(text);
    return value === undefined ? { problem: not } : { value };
  });

/** `example`: the name that is shown before one is typed. */
export async function variable(
  ctx: PiContext,
  example = "ACME_API_KEY",
): Promise<KeySource["from"] | undefined> {
  const name = await askFor(
    ctx,
    "The name of the variable. The key itself does not belong here.",
    example,
    (text) => {
      const name = NAME.exec(text.replace(/^\$\{?(\w+)\}?$/, "$1"))?.[0];
      return name === undefined || isKeyAsVariable(name) ? undefined : name;
    },
    "That is not the name of a variable.",
  );
  if (name === undefined || process.env[name]) return name === undefined ? undefined : { variable: name };
  const text =
    "No variable of that name is set where Pi runs. A variable that is set later needs a new start of Pi.";
  const choice = await choose(ctx, text, [ANOTHER, WRITE_ANYWAY]);
  if (choice === ANOTHER) return variable(ctx, example);
  return choice === WRITE_ANYWAY ? { variable: name } : undefined;
}

export async function command(ctx: PiContext): Promise<KeySource["from"] | undefined> {
  const line = await askFor(
    ctx,
    "The command. It runs at each connect, and its output is the key.",
    "pass show acme",
    (text) => {
      const bare = text.replace(/^!+/, "").trim();
      return bare === "" || bare.length > COMMAND_CHARS ? undefined : bare;
    },
    "Type a command.",
  );
  return line === undefined ? undefined : { command: line };
}

/** A text that the person types, for example `The key`; undefined: none. `none`: what Escape does, in a word. */
export const typed = (ctx: PiContext, what: string, none: string): Promise<string | undefined> =>
  until(ctx, [`${what}. Escape: ${none}.`, ""], (text) =>
    text === "" ? { problem: "Type the value." } : { value: text },
  );

async function typedKey(ctx: PiContext): Promise<{ value: string } | undefined> {
  const value = await typed(ctx, "The key", "no key");
  return value === undefined ? undefined : { value };
}

/** `value`: the key itself, which no file has yet. */
interface Given {
  header?: string;
  from: KeySource["from"] | { value: string };
}

async function source(ctx: PiContext, lead: string, works: boolean): Promise<Given | undefined> {
  const ways = { [VARIABLE]: variable, [TYPE]: typedKey, [COMMAND]: command };
  const names = Object.keys(ways);
  const choices = works ? [LATER, ...names] : [...names, LATER];
  const text = `${lead}\nOnly its place is written into mcp.json, never the key.`;
  const where = await choose(ctx, text, choices);
  const from = where !== undefined && where !== LATER && (await ways[where as keyof typeof ways](ctx));
  if (!from) return undefined;
  const how = await choose(ctx, "How does the server take its key? Its documentation says so.", [
    BEARER,
    OTHER,
  ]);
  if (how !== OTHER) return how && { from };
  const header = await askFor(
    ctx,
    "The name of the header",
    "X-API-Key",
    (text) => HEADER.exec(text.replace(/:$/, ""))?.[0],
    "That is not the name of a header.",
  );
  return header === undefined ? undefined : { header, from };
}

const placeText = ({ header, from }: Given): string => {
  const place =
    "variable" in from
      ? `the variable ${from.variable}`
      : "value" in from
        ? "in a file that only you can read"
        : "the output of a command";
  return `${place}${header === undefined ? "" : `, as ${header}`}`;
};

/** Writes where the key is. A key that was typed is kept, unless its place cannot be written. */
async function writeKey(server: string, { from, ...how }: Given, ask: Ask): Promise<string> {
  if (!("value" in from)) return (await ask("setKey", { server, ...how, from })).file;
  const kept = await ask("keepValue", { server, name: how.header ?? "key", value: from.value });
  try {
    const command = kept.written.slice(1);
    return (await ask("setKey", { server, ...how, from: { command } })).file;
  } catch (error) {
    await ask("dropValues", { files: [kept.file] });
    throw error;
  }
}

/** Asks for the key that a sign-in found to be wanted; `wish` is undefined if it did not. */
export async function askedKey(
  wish: { server: string; why: string; works: boolean } | undefined,
  ctx: PiContext,
  ask: Ask,
): Promise<void> {
  if (wish) await askKey(ctx, wish, ask);
}

/** `why`: what the person reads first. `works`: the server is connected as it is, so that Enter at once gives it no key. */
export async function askKey(
  ctx: PiContext,
  { server, why, works = false }: { server: string; why: string; works?: boolean },
  ask: Ask,
): Promise<void> {
  const name = serverName(server);
  const lead = works ? `${why}\n${name} is connected and works without another key.` : why;
  const key = await source(ctx, `${lead}\nWhere is the key of ${name}?`, works);
  if (!key) return notify(ctx, `${name} gets no key; no file has changed.`, "info");
  const file = await writeKey(server, key, ask);
  const written = `The key of ${name} is ${placeText(key)}, says ${file} now.`;
  if ("variable" in key.from && !process.env[key.from.variable]) {
    return notify(ctx, `${written} Set the variable, and start Pi again.`, "warning");
  }
  await ask("reconnect", { server });
  const { servers } = await ask("status", {});
  const status = servers.find((one) => one.name === server);
  const isConnected = status?.state === "connected";
  const error = status?.error ? failureText(server, status.error) : "it did not connect.";
  const result = isConnected ? `connected, ${counted(status.toolCount, "tool")}.` : error;
  notify(ctx, `${written}\n${name}: ${result}`, isConnected ? "info" : "error");
}
