/**
 * A server's prompt for the model (MCP 2025-11-25, client/sampling): the person reads it, and after a yes Pi's current model
 * answers it. The model reads the server's texts and nothing of the session. Must not: send anything before the yes.
 */
import type { PiContext, PiModel, PromptMessage } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { serverName } from "../../report/server-name.ts";
import type { PromptAnswer, ServerPrompt } from "../../shared/protocol/calls.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import { grouped } from "../../shared/text/amounts.ts";
import { cleanText, oneLine } from "../../shared/text/unprintable.ts";
import { cutTo, printable } from "../../shared/text/width.ts";
import { rows, screenOf } from "../dialog.ts";
import { askInPages, NAME_CELLS, NO } from "../dialogs/questions.ts";

const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const NO_USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: NO_COST };

/** A message as the model's own would be in a transcript of Pi. */
function toMessage(
  { api, provider, id }: PiModel,
  { role, text }: ServerPrompt["messages"][number],
): PromptMessage {
  const said = { content: [{ type: "text" as const, text }], timestamp: Date.now() };
  if (role === "user") return { role, ...said };
  return { role, ...said, api, provider, model: id, usage: NO_USAGE, stopReason: "stop" };
}

/** A bar before each row of the server's lines, so that none passes for a line of ours. */
const barred = (ctx: PiContext, head: string, text: string): string =>
  [`${head}:`, ...rows(printable(text), "│ ", screenOf(ctx))].join("\n");

const promptText = (ctx: PiContext, { system, messages }: ServerPrompt): string =>
  [
    ...(system === undefined ? [] : [barred(ctx, "System prompt", system)]),
    ...messages.map(({ role, text }) => barred(ctx, role === "user" ? "User" : "Assistant", text)),
  ].join("\n");

const ERROR_CHARS = 300;

/** `inTurn`: other dialogs show while the model works. Does not reject. */
export async function answerPrompt(
  ctx: PiContext,
  { server, prompt }: { server: string; prompt: ServerPrompt },
  { signal, inTurn }: { signal: AbortSignal; inTurn: <T>(task: () => Promise<T>) => Promise<T> },
): Promise<PromptAnswer> {
  const name = cutTo(serverName(server), NAME_CELLS);
  const { model } = ctx;
  const failed = (why: string): PromptAnswer => {
    const text = `The MCP server ${name} got no answer of the model: ${oneLine(why, ERROR_CHARS)}`;
    if (!signal.aborted) notify(ctx, printable(text), "warning");
    return { action: "failed" };
  };
  if (!model) {
    failed("no model is chosen. /model chooses one.");
    // Nobody has read it, so it counts as it would without an answer: a server that nags has an end.
    return { action: "cancel" };
  }
  const ask = <A>(head: string, text: string, yes: [string, A][]): Promise<A | "decline" | "cancel"> =>
    inTurn(async () => {
      if (signal.aborted) return "cancel";
      const answers: [string, A | "decline"][] = [...yes, [NO, "decline"]];
      const pages = {
        head: printable(head),
        text,
        answers,
        isNoFirst: false,
        whole: "Show all of it",
      };
      return (await askInPages(ctx, pages, signal)) ?? "cancel";
    });
  const { system, messages, maxTokens, temperature } = prompt;
  const most = Math.min(maxTokens, model.maxTokens);
  try {
    const choice = await ask(
      `Send this of the MCP server ${name} to ${model.provider}/${model.id}? The answer has at most ${grouped(most)} tokens.`,
      promptText(ctx, prompt),
      [
        ["Send it", "send"],
        ["Send it, and show me the answer before the server gets it", "review"],
      ],
    );
    if (choice === "decline" || choice === "cancel") return { action: choice };
    const context = {
      ...(system === undefined ? {} : { systemPrompt: system }),
      messages: messages.map((message) => toMessage(model, message)),
    };
    const options = { maxTokens: most, cacheRetention: "none" as const, signal };
    // Many models that reason refuse a temperature, and the prompt with it.
    const warmth = temperature === undefined || model.reasoning ? {} : { temperature };
    const reply = await ctx.modelRegistry.streamSimple(model, context, { ...options, ...warmth }).result();
    const { stopReason, usage } = reply;
    const tokens = { read: usage.input + usage.cacheRead + usage.cacheWrite, written: usage.output };
    const use = { model: reply.model, tokens };
    if (stopReason !== "stop" && stopReason !== "length")
      return { ...failed(reply.errorMessage ?? `it ended with ${stopReason}`), use };
    // The server gets what the person reads.
    const text = cleanText(reply.content.map((block) => (block.type === "text" ? block.text : "")).join(""));
    if (choice === "review") {
      const sent = await ask(`Give this answer to the MCP server ${name}?`, barred(ctx, reply.model, text), [
        ["Give it to the server", "send"],
      ]);
      if (sent === "decline" || sent === "cancel") return { action: sent, use };
    }
    return { action: "accept", text, isCut: stopReason === "length", use };
  } catch (error) {
    return failed(messageOf(error));
  }
}
