/** `/mcp add`: shows what would run, tries it, asks for the file and writes it. */

import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { failureText, serverName } from "../../report/server-name.ts";
import { addedText, MCP_COMMANDS, mistakeText, ownerText, runsText, triedText } from "../../report/setup.ts";
import { proposedName } from "../../shared/pasted.ts";
import { ThreadsError } from "../../shared/protocol/errors.ts";
import type { KeySource, ProposedServer, ServerPreview, TriedServer } from "../../shared/protocol/person.ts";
import { type AddWords, parseAdd } from "../../shared/setup.ts";
import { counted } from "../../shared/text/amounts.ts";
import { splitWords } from "../../shared/text/split-words.ts";
import { type Ask, ATTEMPTS, choose, type Read, until, whileWaiting } from "./dialog.ts";

const TEST = "Test it, then add it";
const NO_TEST = "Add it without a test";
const CANCEL = "Cancel";
const REPLACE = "Replace it";
const KEEP = "Keep what is there";
const ANYWAY = "Add it anyway";
const WITH_KEY = "Add it, and say where its key is";
const NOT = "Do not add it";

/** Shows the mistakes. False: the entry cannot be used. */
function isUsable(ctx: PiContext, name: string, { mistakes }: ServerPreview): boolean {
  if (mistakes.length === 0) return true;
  const isWrong = mistakes.some(({ severity }) => severity === "error");
  const lead = isWrong ? `${serverName(name)} cannot be added:` : `${serverName(name)}:`;
  notify(ctx, [lead, ...mistakes.map(mistakeText)].join("\n"), isWrong ? "error" : "warning");
  return !isWrong;
}

/** Whether the server may take the place of the one that has its name. */
async function mayReplace(
  ctx: PiContext,
  { name, replace }: AddWords,
  { exists }: ServerPreview,
): Promise<boolean> {
  if (!exists || replace) return true;
  const taken = `A server named ${serverName(name)} is there already, in ${ownerText(exists)}.`;
  if (ctx.hasUI) return (await choose(ctx, taken, [KEEP, REPLACE])) === REPLACE;
  notify(ctx, `${taken} Choose another name, or write --replace.`, "error");
  return false;
}

/** Undefined: the person cancelled the test. */
async function tryIt(ctx: PiContext, proposal: ProposedServer, ask: Ask): Promise<TriedServer | undefined> {
  if (!ctx.hasUI) return ask("tryServer", proposal);
  const text = `Testing ${serverName(proposal.name)}. A package that npm must fetch first may take minutes: the lowest line says how far it is.`;
  try {
    return await whileWaiting(ctx, text, (signal) => ask("tryServer", proposal, signal));
  } catch (error) {
    if (error instanceof ThreadsError && error.code === "cancelled") return undefined;
    throw error;
  }
}

/** Whether the server has answered, and wants a key that its entry does not have. */
const lacksKey = (tried: TriedServer): boolean =>
  tried.outcome === "failed" && tried.error.data?.reason === "key-wanted";

/** Whether the server is to be written after this test. `tried`: undefined if the person cancelled it. */
async function goesOn(ctx: PiContext, name: string, tried: TriedServer | undefined): Promise<boolean> {
  if (tried && tried.outcome !== "failed") return true;
  const text = tried ? triedText(name, tried, MCP_COMMANDS) : `The test of ${serverName(name)} is cancelled.`;
  if (ctx.hasUI) {
    const yes = tried && lacksKey(tried) ? WITH_KEY : ANYWAY;
    return (await choose(ctx, text, [NOT, yes])) === yes;
  }
  notify(ctx, text, "error");
  return false;
}

/** Whether the project's file is to be written; undefined: none is. `lead`: what the person reads first. */
async function whichFile(
  ctx: PiContext,
  { name, entry, project, saysWhere }: AddWords,
  { lead, file }: { lead: string; file: string },
  ask: Ask,
): Promise<boolean | undefined> {
  if (!ctx.hasUI || saysWhere || !ctx.isProjectTrusted()) return project;
  const of = await ask("previewServer", { name, entry, project: true });
  const mine = `For you: ${file}`;
  const projects = `For this project: ${of.file}`;
  const choice = await choose(ctx, `${lead}\nWhere is it to be added?`, [mine, projects, CANCEL]);
  return choice === mine ? false : choice === projects ? true : undefined;
}

/** The test before the server is added; a person may leave it out. Undefined: the server is not to be added. */
async function test(
  ctx: PiContext,
  words: AddWords,
  preview: ServerPreview,
  ask: Ask,
): Promise<TriedServer | "untested" | undefined> {
  const { name } = words;
  if (ctx.hasUI) {
    const title = `Add ${serverName(name)}?\n${runsText(preview)}`;
    const choice = await choose(ctx, title, [TEST, NO_TEST, CANCEL]);
    if (choice !== TEST) return choice === NO_TEST ? "untested" : undefined;
  }
  const tried = await tryIt(ctx, words, ask);
  return (await goesOn(ctx, name, tried)) ? (tried ?? "untested") : undefined;
}

export async function add(ctx: PiContext, words: AddWords, ask: Ask): Promise<void> {
  const { name, entry, project } = words;
  const shown = serverName(name);
  const unchanged = (): void => notify(ctx, `${shown} is not added; no file has changed.`, "info");
  const preview = await ask("previewServer", { name, entry, project });
  if (!isUsable(ctx, name, preview)) return;
  if (!(await mayReplace(ctx, words, preview))) return unchanged();
  const tried = await test(ctx, words, preview, ask);
  if (tried === undefined) return unchanged();
  const result = tried === "untested" ? "" : triedText(name, tried, MCP_COMMANDS);
  const lead = result || `${shown} was not tested.`;
  const isProject = await whichFile(ctx, words, { lead, file: preview.file }, ask);
  if (isProject === undefined) return unchanged();
  const replace = words.replace || preview.exists !== undefined;
  const params = { name, entry, project: isProject, ...(replace ? { replace } : {}) };
  const added = await ask("addServer", params);
  notify(ctx, [addedText(name, added), ...(result === "" ? [] : [result])].join("\n"), "info");
  if (ctx.hasUI && tried !== "untested" && lacksKey(tried)) {
    await askKey(ctx, name, `${shown} is added.`, ask);
  }
}

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

const VARIABLE = "In an environment variable";
const COMMAND = "A command prints it, for example of a password manager";
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
  until(ctx, [title, example], (text) => {
    const value = read(text);
    // What was typed is not repeated: it may be the key.
    return value === undefined ? { problem: not } : { value };
  });

async function variable(ctx: PiContext): Promise<KeySource["from"] | undefined> {
  const name = await askFor(
    ctx,
    "The name of the variable. The key itself does not belong here.",
    "ACME_API_KEY",
    (text) => NAME.exec(text.replace(/^\$\{?(\w+)\}?$/, "$1"))?.[0],
    "That is no name of a variable.",
  );
  if (name === undefined || process.env[name]) return name === undefined ? undefined : { variable: name };
  const text =
    "No variable of that name is set where Pi runs. A variable that is set later needs a new start of Pi.";
  const choice = await choose(ctx, text, [ANOTHER, WRITE_ANYWAY]);
  if (choice === ANOTHER) return variable(ctx);
  return choice === WRITE_ANYWAY ? { variable: name } : undefined;
}

async function command(ctx: PiContext): Promise<KeySource["from"] | undefined> {
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

async function source(ctx: PiContext, lead: string): Promise<KeySource | undefined> {
  const where = await choose(ctx, `${lead}\nOnly its place is written, never the key.`, [
    VARIABLE,
    COMMAND,
    LATER,
  ]);
  if (where !== VARIABLE && where !== COMMAND) return undefined;
  const from = await (where === VARIABLE ? variable(ctx) : command(ctx));
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
    "That is no name of a header.",
  );
  return header === undefined ? undefined : { header, from };
}

const placeText = ({ header, from }: KeySource): string =>
  `${"variable" in from ? `the variable ${from.variable}` : "the output of a command"}${header === undefined ? "" : `, as ${header}`}`;

/** Asks for the key that a sign-in found to be wanted; `wish` is undefined if it did not. */
export async function askedKey(
  wish: { server: string; why: string } | undefined,
  ctx: PiContext,
  ask: Ask,
): Promise<void> {
  if (wish) await askKey(ctx, wish.server, wish.why, ask);
}

/** `why`: what the person reads first. */
async function askKey(ctx: PiContext, server: string, why: string, ask: Ask): Promise<void> {
  const name = serverName(server);
  const key = await source(ctx, `${why}\nWhere is the key of ${name}?`);
  if (!key) return notify(ctx, `${name} gets no key; no file has changed.`, "info");
  const { file } = await ask("setKey", { server, ...key });
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
