/** What a prompt's command does: asks for missing arguments, gets the prompt, and hands its text to the model. */

import type { Catalog } from "../../catalog/catalog.ts";
import type { Completion, InputEvent, InputResult, Pi, PiCommandContext, PiContext } from "../../pi/api.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { type CallResult, decode, type LoadedSkill } from "../../shared/protocol/calls.ts";
import { describeError, describeThrown } from "../../shared/protocol/errors.ts";
import type { SnapshotPrompt } from "../../shared/snapshot/contract.ts";
import { isTextBlock } from "../../shared/text/clean-blocks.ts";
import { oneLine, shownName } from "../../shared/text/unprintable.ts";
import { printable } from "../../shared/text/width.ts";
import type { McpHost } from "../mcp-host.ts";
import { refuse } from "../refuse.ts";
import { whileTyped } from "../typing.ts";
import { withinSession } from "../within-session.ts";

/** Quoted if a person would have to quote it. */
const written = (value: string): string =>
  /^[^\s"'\\]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;

/** The arguments without a value whose names begin so. `head`: the text before the word that is being typed. */
function openArguments(prompt: SnapshotPrompt, head: string, start: string) {
  const given = readArguments(head, prompt);
  return (prompt.arguments ?? []).filter(({ name }) => given[name] === undefined && name.startsWith(start));
}

const orNull = (items: Completion[]): Completion[] | null => (items.length > 0 ? items : null);

/** `typed`: the text behind the command. Null: nothing to suggest. */
export async function completeArguments(
  host: Pick<PromptHost, "ask" | "catalog">,
  command: string,
  typed: string,
): Promise<Completion[] | null> {
  const found = promptNamed(host, command);
  if (!found || found.prompt.skillTool !== undefined) return null;
  const { server, prompt } = found;
  const last = wordsOf(typed).at(-1);
  const word = last?.isOpen ? last : undefined;
  const head = typed.slice(0, word?.at);
  const valuesOf = (argument: string, value: string): Promise<string[]> => {
    const { [argument]: _own, ...context } = readArguments(head, prompt);
    const asked = { server, prompt: prompt.prompt, argument, value, context };
    // Without an answer of the worker the person types on; the worker's own trouble is reported elsewhere.
    return host.ask("completePrompt", asked).catch((): string[] => []);
  };
  const items = (argument: string, values: readonly string[], lead = ""): Completion[] =>
    values.map((text) => ({ value: `${head}${argument}=${written(text)}`, label: `${lead}${text}` }));
  const named = word && namedIn(word.text, prompt);
  if (named) {
    const values = await valuesOf(...named);
    return values.includes(named[1]) ? null : orNull(items(named[0], values));
  }
  const open = openArguments(prompt, head, word?.text ?? "");
  const [first] = open;
  if (!first) return null;
  const names = open.map(({ name, description }) => ({
    value: `${head}${name}=`,
    label: `${name}=`,
    ...(description === undefined ? {} : { description }),
  }));
  // Pi asks for nothing more when a name is taken, so the values of the first one stand beside it.
  return [...names, ...items(first.name, await valuesOf(first.name, ""), `${first.name}=`)];
}

export interface PromptHost {
  pi: Pick<Pi, "registerCommand" | "sendUserMessage" | "getCommands">;
  ask: Runtime["ask"];
  catalog: () => Catalog;
  onChange: McpHost["onChange"];
  /** A skill has been loaded by its command. Its text, which begins so, is sent next. */
  onSkill: (skill: LoadedSkill, start: string) => void;
  /** Waits, within limits, until the servers' tools and prompts are known. */
  settle: () => Promise<unknown>;
}

type NamedPrompt = NonNullable<ReturnType<typeof promptNamed>>;

/** A person typed a command: its name without the slash, and the text behind it. */
interface TypedCommand {
  name: string;
  args: string;
  ctx: PiContext;
}

/** The prompt of a command in the newest catalog. */
function promptNamed({ catalog }: Pick<PromptHost, "catalog">, name: string) {
  for (const { name: server, prompts = [] } of catalog().servers) {
    const prompt = prompts.find(({ command }) => command === name);
    if (prompt) return { server, prompt };
  }
  return undefined;
}

interface Word {
  text: string;
  at: number;
  /** It begins with a quote. */
  isQuoted: boolean;
  /** The word reaches the end of the text: a person may still be typing it. */
  isOpen: boolean;
}

const SPACE = /\s/;

/** The words of a text. A quote at the start of a word or of a value holds spaces together; `\"` stands for itself. */
export function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  for (let at = 0; at < text.length; ) {
    if (SPACE.test(text[at] ?? "")) {
      at++;
      continue;
    }
    const start = at;
    let word = "";
    let quote = "";
    for (; at < text.length; at++) {
      const char = text[at] ?? "";
      if (quote === "" && SPACE.test(char)) break;
      if (quote === "" && /["']/.test(char) && (word === "" || word.endsWith("="))) quote = char;
      else if (char === quote) quote = "";
      else if (char === "\\" && quote !== "" && [quote, "\\"].includes(text[at + 1] ?? ""))
        word += text[++at];
      else word += char;
    }
    words.push({
      text: word,
      at: start,
      isQuoted: /["']/.test(text[start] ?? ""),
      isOpen: at >= text.length,
    });
  }
  return words;
}

/** The argument that a word names, as in `name=value`; undefined if the word is a value. */
export function namedIn(
  text: string,
  { arguments: args = [] }: SnapshotPrompt,
): [string, string] | undefined {
  const name = args.find((argument) => text.startsWith(`${argument.name}=`))?.name;
  return name === undefined ? undefined : [name, text.slice(name.length + 1)];
}

/**
 * The values by argument. Values without a name fill the arguments that no name fills; the last one takes the rest. `firsts`: the
 * first word of each such value. `left`: words for which no argument is left.
 */
function dealt(typed: string, prompt: SnapshotPrompt) {
  const values = new Map<string, string>();
  const loose: Word[] = [];
  for (const word of wordsOf(typed)) {
    const named = namedIn(word.text, prompt);
    if (named) values.set(...named);
    else loose.push(word);
  }
  const open = (prompt.arguments ?? []).filter(({ name }) => !values.has(name));
  const firsts = loose.slice(0, open.length);
  for (const [at, { name }] of open.entries()) {
    const own = at === open.length - 1 ? loose.slice(at) : loose.slice(at, at + 1);
    if (own.length > 0) values.set(name, own.map(({ text }) => text).join(" "));
  }
  return { values: Object.fromEntries(values), firsts, left: open.length === 0 ? loose : [] };
}

export const readArguments = (typed: string, prompt: SnapshotPrompt): Record<string, string> =>
  dealt(typed, prompt).values;

const NAMED = /^([A-Za-z_][\w-]*)=/;
const WORD_CHARS = 60;

/** Why the words are not what the person means; undefined: they can be. */
export function wrongWords(typed: string, prompt: SnapshotPrompt): string | undefined {
  const { firsts, left } = dealt(typed, prompt);
  const names = (prompt.arguments ?? []).map(({ name }) => name);
  if (names.length === 0) return typed.trim() === "" ? undefined : "the prompt takes no arguments.";
  for (const { text, isQuoted } of firsts) {
    const [, name] = isQuoted ? [] : (NAMED.exec(text) ?? []);
    if (name !== undefined) {
      return `the prompt has no argument ${oneLine(name, WORD_CHARS)}. It takes ${names.join(", ")}; a value that holds = needs quotes.`;
    }
  }
  const [extra] = left;
  if (extra === undefined) return undefined;
  return `"${oneLine(extra.text, WORD_CHARS)}" belongs to no argument. Several words of one value need quotes.`;
}

/** For example `topic=<what> [style=<how>]`. */
export const usageOf = ({ arguments: args = [] }: SnapshotPrompt): string =>
  args.map(({ name, required }) => (required ? `${name}=…` : `[${name}=…]`)).join(" ");

const NAME_CHARS = 64;

class Refusal extends Error {}

/** The arguments as typed, and those that the person was asked for. Throws a Refusal. */
async function allArguments(
  { server, prompt }: NamedPrompt,
  { args, ctx }: TypedCommand,
): Promise<Record<string, string>> {
  const values = readArguments(args, prompt);
  const wrong = wrongWords(args, prompt);
  if (wrong !== undefined) throw new Refusal(wrong);
  for (const { name, required, description } of prompt.arguments ?? []) {
    if (!required || values[name] !== undefined) continue;
    if (!ctx.hasUI) throw new Refusal(`the argument ${name} is missing. Usage: ${usageOf(prompt)}`);
    const title = `${shownName(server)} asks for ${name}${description === undefined ? "" : `: ${description}`}`;
    const value = await whileTyped(ctx, ctx.ui.input(printable(title)));
    if (typeof value !== "string") throw new Refusal("cancelled.");
    values[name] = value;
  }
  return values;
}

/** The instructions of a skill, and what the person wrote behind the command. */
async function skillContent(
  host: PromptHost,
  { server, tool }: { server: string; tool: string },
  { args }: TypedCommand,
): Promise<CallResult["content"]> {
  const request = { callId: `command-${++commands}`, server, tool, args: {}, byPerson: true };
  const { content, skill } = decode(await host.ask("callTool", request)) as CallResult;
  if (skill) host.onSkill(skill, content.find(isTextBlock)?.text ?? "");
  return args.trim() === "" ? content : [...content, { type: "text", text: args.trim() }];
}

let commands = 0;

/** The server of the command may be switched off. */
async function whyNone({ ask }: PromptHost, name: string): Promise<string> {
  const why = await ask("explainMissing", { name });
  return why ? describeError(why) : "no server offers this prompt.";
}

/** Undefined: the session has ended, and with it the dialog that asked for an argument. */
async function contentOf(host: PromptHost, typed: TypedCommand): Promise<CallResult["content"] | undefined> {
  const named = promptNamed(host, typed.name);
  if (!named) throw new Refusal(await whyNone(host, typed.name));
  const { server, prompt } = named;
  if (prompt.skillTool !== undefined) return skillContent(host, { server, tool: prompt.skillTool }, typed);
  return withinSession(typed.ctx, host, async (ctx) => {
    const args = await allArguments(named, { ...typed, ctx });
    const bytes = await host.ask("getPrompt", { server, prompt: prompt.prompt, args });
    return (decode(bytes) as CallResult).content;
  });
}

function report(ctx: PiContext, name: string, error: unknown): void {
  const text = `/${oneLine(name, NAME_CHARS)}: ${describeThrown(error)}`;
  if (error instanceof Refusal) refuse(ctx, "unusable", text);
  else refuse(ctx, "failed", text, "error");
}

/** For a command that Pi knows. A failure becomes a notice. */
export async function runCommand(
  host: PromptHost,
  typed: TypedCommand & { ctx: PiCommandContext },
): Promise<void> {
  try {
    const content = await contentOf(host, typed);
    if (!content) return;
    // While the model works, the prompt waits for its turn like any message that is typed meanwhile.
    host.pi.sendUserMessage(content, typed.ctx.isIdle() ? undefined : { deliverAs: "followUp" });
  } catch (error) {
    report(typed.ctx, typed.name, error);
  }
}

/** Other extensions' commands come before inputs, but files that Pi expands come after them. */
const isForeign = ({ pi }: PromptHost, name: string): boolean =>
  pi.getCommands().some((command) => command.name === name);

/** For a command that Pi does not know. The prompt's text takes the place of the input, whose images stay before its own. */
export async function promptAsInput(
  host: PromptHost,
  typed: TypedCommand & Pick<InputEvent, "images">,
): Promise<InputResult> {
  const { name, ctx } = typed;
  if (isForeign(host, name)) return { action: "continue" };
  try {
    if (!promptNamed(host, name)) await host.settle();
    const content = await contentOf(host, typed);
    if (!content) return { action: "handled" };
    const text = content
      .filter(isTextBlock)
      .map((part) => part.text)
      .join("\n");
    const images = [...(typed.images ?? []), ...content.filter((part) => !isTextBlock(part))];
    // Pi would expand a text that starts with a slash: a server must not run skills or templates of the user.
    return { action: "transform", text: text.startsWith("/") ? `\n${text}` : text, images };
  } catch (error) {
    report(ctx, name, error);
    return { action: "handled" };
  }
}
