/** `/mcp add` without words: the kind of the server, then its parts one by one. */

import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { KNOWN_SERVERS, knownText, parseKnown } from "../../shared/known-servers.ts";
import { proposedName } from "../../shared/pasted.ts";
import { type AddWords, isJsonText, parseAdd } from "../../shared/setup.ts";
import { splitWords } from "../../shared/text/split-words.ts";
import { whileTyped } from "../typing.ts";
import { ATTEMPTS, choose, type Read, until } from "./dialog.ts";

const KNOWN = "A well-known server";
const LOCAL = "A program on this machine: a command";
const REMOTE = "A remote server (URL)";
const JSON_TEXT = "Paste JSON from a README";
const BACK = "Back";

const wordsOf = (text: string): Read<string[]> => {
  const split = splitWords(text);
  return "problem" in split ? split : { value: split.words };
};

/** What `add` says of words with the name `x` in front, so that each step is checked by the rules of all. */
function checked<T>(words: readonly string[], value: T): Read<T> {
  const parsed = parseAdd(words);
  return "problem" in parsed ? parsed : { value };
}

function readTarget(text: string, isRemote: boolean): Read<string[]> {
  const split = wordsOf(text);
  if ("problem" in split) return split;
  if (split.value.length === 0) return { problem: isRemote ? "Type the URL." : "Type the command." };
  return checked([...(isRemote ? ["--transport", "http"] : []), "x", "--", ...split.value], split.value);
}

function readEnv(text: string): Read<string[]> {
  const split = wordsOf(text);
  if ("problem" in split) return split;
  const wrong = split.value.findIndex((word) => word.indexOf("=") <= 0);
  if (wrong >= 0)
    return { problem: `Word ${wrong + 1} is not NAME=value. Put a value with spaces in quotes.` };
  const options = split.value.flatMap((pair) => ["--env", pair]);
  return checked([...options, "x", "--", "command"], options);
}

function readToken(text: string): Read<string[]> {
  const options = text === "" ? [] : ["--bearer-token-env", text.replace(/^\$\{?(\w+)\}?$/, "$1")];
  return checked([...options, "x", "https://example.com"], options);
}

const askOptions = (ctx: PiContext, isRemote: boolean): Promise<string[] | undefined> =>
  isRemote
    ? until(
        ctx,
        [
          "The environment variable that holds its token. Enter to skip: none, or a sign-in later.",
          "DOCS_TOKEN",
        ],
        readToken,
      )
    : until(
        ctx,
        [
          "Environment variables of the program, as NAME=value. \u0024{VAR} is filled in at each start. Enter to skip.",
          "TOKEN=\u0024{TOKEN}",
        ],
        readEnv,
        true,
      );

/** In Pi's editor, because such a text has lines. */
async function askJson(ctx: PiContext): Promise<AddWords | AddWords[] | undefined> {
  let text = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const edited: unknown = await whileTyped(ctx, ctx.ui.editor("The JSON of the server", text));
    // Over RPC the other program may send anything.
    if (typeof edited !== "string" || edited.trim() === "") return undefined;
    text = edited;
    // A comment in the last line ends with it.
    const parsed = parseAdd(["--", isJsonText(text) ? text : `{${text.trim()}\n}`]);
    if ("add" in parsed) return withName(ctx, parsed.add);
    if (parsed.instead?.several) return parsed.instead.several;
    notify(ctx, parsed.problem, "warning");
  }
  return undefined;
}

export async function withName(ctx: PiContext, words: AddWords): Promise<AddWords | undefined> {
  const name = await until(ctx, [`Its name. Enter: ${words.name}`, words.name], (text) => ({
    value: text || words.name,
  }));
  return name === undefined ? undefined : { ...words, name };
}

async function askKnown(ctx: PiContext): Promise<AddWords | "back" | undefined> {
  const rows = KNOWN_SERVERS.map(knownText);
  const choice = await choose(ctx, "Add which server?", [...rows, BACK]);
  if (choice === BACK) return "back";
  const known = choice === undefined ? undefined : KNOWN_SERVERS[rows.indexOf(choice)];
  const parsed = known && parseKnown([known.name]);
  return parsed && "add" in parsed ? parsed.add : undefined;
}

/** Several: those of a JSON text that holds more than one. Undefined: the person closed a dialog. */
export async function askWords(ctx: PiContext): Promise<AddWords | AddWords[] | undefined> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const kind = await choose(ctx, "Add what?", [KNOWN, LOCAL, REMOTE, JSON_TEXT]);
    if (kind === JSON_TEXT) return askJson(ctx);
    const chosen = kind === KNOWN ? await askKnown(ctx) : undefined;
    if (chosen !== "back") return kind === LOCAL || kind === REMOTE ? askParts(ctx, kind) : chosen;
  }
  return undefined;
}

async function askParts(ctx: PiContext, kind: typeof LOCAL | typeof REMOTE): Promise<AddWords | undefined> {
  const isRemote = kind === REMOTE;
  const target = await until(
    ctx,
    isRemote
      ? ["The URL of the server", "https://example.com/mcp"]
      : ["The command with its arguments", "npx -y @modelcontextprotocol/server-filesystem ."],
    (text) => readTarget(text, isRemote),
    true,
  );
  if (target === undefined) return undefined;
  const options = await askOptions(ctx, isRemote);
  if (options === undefined) return undefined;
  const proposal = proposedName(target);
  const name = await until(ctx, [`Its name. Enter: ${proposal}`, proposal], (text) => ({
    value: text || proposal,
  }));
  if (name === undefined) return undefined;
  const transport = isRemote ? ["--transport", "http"] : [];
  const parsed = parseAdd([
    ...transport,
    ...options,
    ...(name.startsWith("-") ? [] : [name]),
    "--",
    ...target,
  ]);
  if ("add" in parsed) return parsed.add;
  notify(ctx, parsed.problem, "warning");
  return undefined;
}
