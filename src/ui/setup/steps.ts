/** `/mcp add` without words: asks for what the words would say, step by step. */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { type AddWords, parseAdd } from "../../shared/setup/add-words.ts";
import { proposedName } from "../../shared/setup/proposed-name.ts";
import { splitWords } from "../../shared/setup/split-words.ts";
import { ATTEMPTS, choose, type Read, until } from "./dialog.ts";

const LOCAL = "A program on this machine: a command";
const REMOTE = "A server on the net: a URL";
const JSON_TEXT = "The JSON that its README shows";

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
          "The environment variable that holds its token. Enter alone: none, or a sign-in later.",
          "DOCS_TOKEN",
        ],
        readToken,
      )
    : until(
        ctx,
        [
          "Environment variables of the program, as NAME=value. \u0024{VAR} is filled in at each start. Enter alone: none.",
          "TOKEN=\u0024{TOKEN}",
        ],
        readEnv,
      );

/** In Pi's editor, because such a text has lines. */
async function askJson(ctx: PiContext): Promise<AddWords | undefined> {
  let text = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const edited: unknown = await ctx.ui.editor("The JSON of the server", text);
    // Over RPC the other program may send anything.
    if (typeof edited !== "string" || edited.trim() === "") return undefined;
    text = edited;
    const first = text.trim().startsWith("{") ? text.trim() : `{${text.trim().replace(/,$/, "")}}`;
    const parsed = parseAdd(["--", first]);
    if ("add" in parsed) return withName(ctx, parsed.add);
    notify(ctx, parsed.problem, "warning");
  }
  return undefined;
}

async function withName(ctx: PiContext, words: AddWords): Promise<AddWords | undefined> {
  const name = await until(ctx, [`Its name. Enter alone: ${words.name}`, words.name], (text) => ({
    value: text || words.name,
  }));
  return name === undefined ? undefined : { ...words, name };
}

/** Undefined: the person closed a dialog. */
export async function askWords(ctx: PiContext): Promise<AddWords | undefined> {
  const kind = await choose(ctx, "What is to be added?", [LOCAL, REMOTE, JSON_TEXT]);
  if (kind === undefined) return undefined;
  if (kind === JSON_TEXT) return askJson(ctx);
  const isRemote = kind === REMOTE;
  const target = await until(
    ctx,
    isRemote
      ? ["The URL of the server", "https://example.com/mcp"]
      : ["The command with its arguments", "npx -y @modelcontextprotocol/server-filesystem ."],
    (text) => readTarget(text, isRemote),
  );
  if (target === undefined) return undefined;
  const options = await askOptions(ctx, isRemote);
  if (options === undefined) return undefined;
  const proposal = proposedName(target);
  const name = await until(ctx, [`Its name. Enter alone: ${proposal}`, proposal], (text) => ({
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
