/** Turns an answer that is not the expected one into an `AnswerError` with the server's own words in one line. */
import type { Readable } from "node:stream";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { createReader, readInTurn } from "../../../shared/pace/turns.ts";
import type { RpcError } from "../../mcp/modern/era.ts";
import { Blocks, createPieces } from "../../messages/pieces.ts";
import { type HttpResponse, redirectTarget } from "../../web/client.ts";
import { readBody } from "./events.ts";
import { AnswerError, mediaType } from "./failure.ts";

/** Enough of a body to find a message or a title. */
const HEAD_BYTES = 16 * 1024;
/** Limit for reading the body of a refusal, which may never end. */
const HEAD_MS = 2_000;

async function head({ body }: HttpResponse): Promise<Buffer> {
  const pieces = createPieces();
  const timer = setTimeout(() => body.destroy(), HEAD_MS);
  // If the body breaks, the part before that may still say something.
  await readInTurn(body, body.reader ?? createReader(), (piece) => {
    pieces.push(piece);
    if (pieces.bytes >= HEAD_BYTES) body.destroy();
    return undefined;
  }).catch(() => undefined);
  clearTimeout(timer);
  const received = pieces.take();
  return (received instanceof Blocks ? received.head : received).subarray(0, HEAD_BYTES);
}

/**
 * Reads an answer that nobody needs to its end, so that its connection can be used again. Settles when the body has
 * ended or is too long. Never rejects. The sender of the request limits the time.
 */
export async function discard(body: Readable): Promise<void> {
  await readBody(body, HEAD_BYTES).catch(() => undefined);
}

const oneLine = (text: string): string =>
  (text.trim().split(/[\r\n]/, 1)[0] ?? "").replace(/\s+/g, " ").trim();

const textIn = (value: unknown): string | undefined => {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return undefined;
  const { message, error_description, error, detail, title } = value as Record<string, unknown>;
  return [message, error_description, error, detail, title].map(textIn).find((text) => text !== undefined);
};

/** The title, or the first heading if the title says nothing (Express: `<title>Error</title>`). */
function htmlTitle(html: string): string {
  const title = /<title[^>]*>([^<]*)/i.exec(html)?.[1]?.trim() ?? "";
  if (title !== "" && !/^error$/i.test(title)) return title;
  return /<(?:pre|h1)[^>]*>([^<]*)/i.exec(html)?.[1] ?? title;
}

/** The first text for people in JSON that is cut: of a long body only the start is read. */
function startOfText(json: string): string {
  const text =
    /"(?:message|error_description|error|detail|title)"\s*:\s*"((?:[^"\\]|\\[^u]|\\u[\da-f]{4})*)/i.exec(
      json,
    )?.[1];
  try {
    return text === undefined ? "" : String(JSON.parse(`"${text}"`));
  } catch {
    // The server writes no JSON.
    return "";
  }
}

/** The message for people in the start of a body, in one line; empty if the body is not for people. */
export function textOfAnswer(type: string | undefined, body: string): string {
  if (type === "text/html" || /^\s*<(!doctype|html)/i.test(body)) return oneLine(htmlTitle(body));
  if (type === "application/json" || type === "application/problem+json" || /^\s*\{/.test(body)) {
    try {
      return oneLine(textIn(JSON.parse(body)) ?? "");
    } catch {
      return oneLine(startOfText(body));
    }
  }
  return type === undefined || type.startsWith("text/plain") ? oneLine(body) : "";
}

/** The JSON-RPC error that a body holds. A refusal often has no id, or null, because the request was not understood. */
function rpcErrorIn(body: string): RpcError | undefined {
  if (!/^\s*\{/.test(body)) return undefined;
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    if (!isObject(error) || !Number.isSafeInteger(error.code)) return undefined;
    const { code, message, data } = error;
    return { code: Number(code), message: typeof message === "string" ? message : "", data };
  } catch {
    return undefined;
  }
}

/** Reads at most the start of the body and ends the body. `body`: that start, which may be a JSON-RPC message. */
export async function answerError(
  response: HttpResponse,
  asked: { url: URL; sessionId?: string | undefined },
): Promise<{ error: AnswerError; body: Buffer }> {
  const { status, headers } = response;
  const stream = mediaType(headers) === "text/event-stream";
  if (stream) response.body.destroy();
  const body = stream ? Buffer.alloc(0) : await head(response);
  const said = body.toString("utf8");
  const error = new AnswerError({
    status,
    headers,
    text: textOfAnswer(mediaType(headers), said),
    redirect: redirectTarget(response, asked.url),
    sessionId: asked.sessionId,
    rpc: rpcErrorIn(said),
  });
  return { error, body };
}
