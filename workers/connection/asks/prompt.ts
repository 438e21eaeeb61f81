/**
 * Reads a prompt that a server has for Pi's model (MCP 2025-11-25, client/sampling; SEP-2577 deprecates it since
 * 2026-07-28), and makes the result of the model's answer. The request may have any shape. A prompt is sent whole, as the
 * person is shown it, or not at all. Pure.
 */
import type { PromptAnswer, ServerPrompt } from "../../../src/shared/protocol/calls.ts";
import { asList, isObject } from "../../../src/shared/protocol/values.ts";
import { cleanText } from "../../../src/shared/text/unprintable.ts";
import type { Redactor } from "../secrets/redact.ts";
import { PROMPT_CHARS, PROMPT_MESSAGES, REPLY_CHARS, REPLY_TOKENS, STOP_CHARS, STOPS } from "./limits.ts";

/** What the server gets in place of an answer, as a JSON-RPC error. */
export class NoReply extends Error {
  override readonly name = "NoReply";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** MCP 2025-11-25, client/sampling, "Error Handling". */
const REFUSED = -1;
const INVALID_PARAMS = -32_602;
const INTERNAL = -32_603;

const invalid = (problem: string): NoReply =>
  new NoReply(INVALID_PARAMS, `Not sent to the model: ${problem}.`);

/** A prompt with what the result needs of the request. */
export interface ReadPrompt {
  prompt: ServerPrompt;
  stops: readonly string[];
}

/** The text of one message; undefined: it has other content. */
function textOf(content: unknown): string | undefined {
  const blocks = (Array.isArray(content) ? content : [content]).map((block: unknown) =>
    isObject(block) && block.type === "text" && typeof block.text === "string" ? block.text : undefined,
  );
  return blocks.includes(undefined) ? undefined : blocks.join("\n");
}

/** Reads the params of `sampling/createMessage`. Throws `NoReply`. */
export function readPrompt(params: unknown, redact: Redactor): ReadPrompt {
  if (!isObject(params)) throw invalid("the request has no content");
  const { messages, systemPrompt, maxTokens, temperature, stopSequences, tools } = params;
  if (!Array.isArray(messages) || messages.length === 0) throw invalid("there is no message");
  if (messages.length > PROMPT_MESSAGES) throw invalid(`there are more than ${PROMPT_MESSAGES} messages`);
  // The server was not told `sampling.tools`, and a client must refuse them then (the same page, "Capabilities").
  if (tools !== undefined) throw invalid("this client gives the model no tools");
  if (systemPrompt !== undefined && typeof systemPrompt !== "string")
    throw invalid("the system prompt is not a text");
  let chars = systemPrompt?.length ?? 0;
  const read = messages.map((message: unknown): ServerPrompt["messages"][number] => {
    const { role, content } = isObject(message) ? message : {};
    if (role !== "user" && role !== "assistant") throw invalid("a message is of an unknown role");
    const text = textOf(content);
    if (text === undefined) throw invalid("a message holds something other than text");
    chars += text.length;
    return { role, text };
  });
  if (chars > PROMPT_CHARS)
    throw invalid(
      `the prompt has ${chars.toLocaleString("en")} characters, more than ${PROMPT_CHARS.toLocaleString("en")}`,
    );
  // Cleaning joins what a hidden character or an escape has divided, so a secret is looked for behind it.
  const clean = (text: string): string => redact(cleanText(text));
  const system = clean(systemPrompt ?? "");
  const texts = read.map(({ role, text }) => ({ role, text: clean(text) }));
  // Pi leaves such a message out: the model would read other messages than the person.
  if (texts.some(({ text }) => text.trim() === "")) throw invalid("a message has no text");
  const tokens = typeof maxTokens === "number" && maxTokens >= 1 ? Math.floor(maxTokens) : REPLY_TOKENS;
  const isWarm = typeof temperature === "number" && temperature >= 0 && temperature <= 2;
  const prompt: ServerPrompt = {
    ...(system === "" ? {} : { system }),
    messages: texts,
    maxTokens: Math.min(tokens, REPLY_TOKENS),
    ...(isWarm ? { temperature } : {}),
  };
  const stops = asList(stopSequences)
    .slice(0, STOPS)
    .filter((stop) => typeof stop === "string" && stop !== "" && stop.length <= STOP_CHARS) as string[];
  return { prompt, stops };
}

/** The result of `sampling/createMessage`. Pi's models take no texts at which they stop, so the answer is cut at the first. */
export function replyOf(answer: PromptAnswer, { stops }: Pick<ReadPrompt, "stops">): Record<string, unknown> {
  if (answer.action === "failed") throw new NoReply(INTERNAL, "The model gave no answer.");
  if (answer.action !== "accept") throw new NoReply(REFUSED, "User rejected sampling request");
  const text = answer.text.slice(0, REPLY_CHARS);
  const ends = stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
  const isCut = answer.isCut || text.length < answer.text.length;
  return {
    role: "assistant",
    content: { type: "text", text: ends.length > 0 ? text.slice(0, Math.min(...ends)) : text },
    model: answer.use.model,
    stopReason: ends.length > 0 ? "stopSequence" : isCut ? "maxTokens" : "endTurn",
  };
}
