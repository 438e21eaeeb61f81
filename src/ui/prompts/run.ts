/** What a prompt's command does: asks for missing arguments, gets the prompt, and hands its text to the model. */
import type { InputResult, PiCommandContext, PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import type { CallResult } from "../../shared/protocol/calls.ts";
import { decode } from "../../shared/protocol/codec.ts";
import { describeThrown } from "../../shared/protocol/errors.ts";
import { isTextBlock } from "../../shared/text/text-block.ts";
import { oneLine, shownName } from "../../shared/text/unprintable.ts";
import { printable } from "../../shared/text/width.ts";
import { readArguments, usageOf } from "./arguments.ts";
import type { NamedPrompt, PromptHost, TypedCommand } from "./contract.ts";
import { promptNamed } from "./named.ts";

export { completeArguments } from "./complete.ts";

const NAME_CHARS = 64;

class Refusal extends Error {}

/** The arguments as typed, and those that the person was asked for. Throws a Refusal. */
async function allArguments(
  { server, prompt }: NamedPrompt,
  { args, ctx }: TypedCommand,
): Promise<Record<string, string>> {
  const values = readArguments(args, prompt);
  const unknown = (prompt.arguments ?? []).length === 0 && args.trim() !== "";
  if (unknown) throw new Refusal("the prompt takes no arguments.");
  for (const { name, required, description } of prompt.arguments ?? []) {
    if (!required || values[name] !== undefined) continue;
    if (!ctx.hasUI) throw new Refusal(`the argument ${name} is missing. Usage: ${usageOf(prompt)}`);
    const title = `${shownName(server)} asks for ${name}${description === undefined ? "" : `: ${description}`}`;
    const value = await ctx.ui.input(printable(title));
    if (typeof value !== "string") throw new Refusal("cancelled.");
    values[name] = value;
  }
  return values;
}

async function contentOf(host: PromptHost, typed: TypedCommand): Promise<CallResult["content"]> {
  const named = promptNamed(host, typed.name);
  if (!named) throw new Refusal("no server offers this prompt any more.");
  const { server, prompt } = named;
  const args = await allArguments(named, typed);
  const bytes = await host.ask("getPrompt", { server, prompt: prompt.prompt, args });
  return (decode(bytes) as CallResult).content;
}

function report(ctx: PiContext, name: string, error: unknown): void {
  const level = error instanceof Refusal ? "warning" : "error";
  notify(ctx, `/${oneLine(name, NAME_CHARS)}: ${describeThrown(error)}`, level);
}

/** For a command that Pi knows. A failure becomes a notice. */
export async function runCommand(
  host: PromptHost,
  typed: TypedCommand & { ctx: PiCommandContext },
): Promise<void> {
  try {
    const content = await contentOf(host, typed);
    // While the model works, the prompt waits for its turn like any message that is typed meanwhile.
    host.pi.sendUserMessage(content, typed.ctx.isIdle() ? undefined : { deliverAs: "followUp" });
  } catch (error) {
    report(typed.ctx, typed.name, error);
  }
}

/** Other extensions' commands come before inputs, but files that Pi expands come after them. */
const isForeign = ({ pi }: PromptHost, name: string): boolean =>
  pi.getCommands().some((command) => command.name === name);

/** For a command that Pi does not know. The prompt's text takes the place of the input. */
export async function promptAsInput(host: PromptHost, typed: TypedCommand): Promise<InputResult> {
  const { name, ctx } = typed;
  if (isForeign(host, name)) return { action: "continue" };
  try {
    if (!promptNamed(host, name)) await host.settle();
    if (!promptNamed(host, name)) throw new Refusal("no server offers this prompt.");
    const content = await contentOf(host, typed);
    const text = content
      .filter(isTextBlock)
      .map((part) => part.text)
      .join("\n");
    const images = content.filter((part) => !isTextBlock(part));
    // Pi would expand a text that starts with a slash: a server must not run skills or templates of the user.
    return { action: "transform", text: text.startsWith("/") ? `\n${text}` : text, images };
  } catch (error) {
    report(ctx, name, error);
    return { action: "handled" };
  }
}
