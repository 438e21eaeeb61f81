/**
 * Receives the answer to one POST of Streamable HTTP (MCP 2025-11-25, basic/transports, sending messages): JSON, or
 * events, which are resumed if they end too early. Settles when the answer has been delivered; rejects when it will not
 * come.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Received } from "../../messages/pieces.ts";
import { type MessageStream, receive } from "../../messages/receive.ts";
import { TooLarge } from "../../messages/too-large.ts";
import type { HttpResponse } from "../../web/client.ts";
import { answerError, discard } from "./answer.ts";
import { readBody, readEvents, type ServerEvent } from "./events.ts";
import { AnswerError, BrokenAnswer, mediaType } from "./failure.ts";
import type { Exchange } from "./open-exchanges.ts";
import { createResume, type Resume } from "./resume.ts";

export interface ReceiveOptions {
  url: URL;
  maxBytes: number;
  /** What the messages go to. */
  stream: MessageStream;
  onEvent: (event: ServerEvent) => undefined | Promise<unknown>;
  /**
   * Asks for the events after `lastId`. Undefined or rejected: not available now. Absent: the answer comes in this response
   * or not at all.
   */
  resume?: (lastId: string) => Promise<HttpResponse | undefined>;
  signal: AbortSignal;
}

/** A server should end its response after the answer. After this time the response is ended here. */
export const AFTER_ANSWER_MS = 1_000;

export async function receiveAnswer(
  response: HttpResponse,
  exchange: Exchange,
  options: ReceiveOptions,
): Promise<void> {
  const type = mediaType(response.headers);
  if (type === "text/event-stream") await receiveEvents(response, exchange, options);
  else if (type === "application/json") await receiveJson(response, exchange, options);
  // The answer comes on the stream of notifications. The specification does not allow this, but some servers do it.
  else if (response.status === 202 && options.resume) await receiveElsewhere(response, exchange, options);
  else throw (await answerError(response, { url: options.url })).error;
}

async function receiveJson(
  response: HttpResponse,
  exchange: Exchange,
  options: ReceiveOptions,
): Promise<void> {
  const { status, headers } = response;
  let isRead = false;
  const take = (body: Received): undefined | Promise<unknown> => {
    isRead = true;
    return receive(body, {
      ...options.stream,
      onNoise: () => {
        throw new AnswerError({ status, headers, text: "this is not a JSON-RPC message" });
      },
    });
  };
  await readBody(response.body, options.maxBytes, take).catch((error: unknown) => {
    throw isRead || error instanceof TooLarge || options.signal.aborted ? error : new BrokenAnswer(error);
  });
  if (!exchange.answered)
    throw new AnswerError({ status, headers, text: "this does not answer the request" });
}

/** The body stays open until the answer has come: some servers end a request together with its connection. */
async function receiveElsewhere(
  { body }: HttpResponse,
  exchange: Exchange,
  { signal }: ReceiveOptions,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const giveUp = (): void => reject(signal.reason);
  exchange.onAnswered = resolve;
  if (exchange.answered) resolve();
  if (signal.aborted) giveUp();
  signal.addEventListener("abort", giveUp, { once: true });
  const ended = discard(body);
  try {
    await promise;
  } finally {
    signal.removeEventListener("abort", giveUp);
    const late = setTimeout(() => body.destroy(), AFTER_ANSWER_MS);
    void ended.then(() => clearTimeout(late));
  }
}

/**
 * A stream that ends before the answer is resumed if the server gave its events ids (MCP 2025-11-25, resumability and
 * redelivery). Resuming repeats no call.
 */
async function receiveEvents(
  first: HttpResponse,
  exchange: Exchange,
  options: ReceiveOptions,
): Promise<void> {
  const { signal, resume } = options;
  const position = createResume(() => performance.now());
  let response: HttpResponse | undefined = first;
  let cause: unknown;
  while (true) {
    if (response) cause = await readUntilAnswered(response, exchange, { ...options, position });
    if (exchange.answered) return;
    signal.throwIfAborted();
    const { lastId } = position;
    const waitMs = position.nextMs();
    if (!resume || lastId === undefined || waitMs === undefined) throw new BrokenAnswer(cause);
    await sleep(waitMs, undefined, { signal });
    response = await resume(lastId).catch(() => undefined);
    position.onAttempt(response !== undefined);
  }
}

/** Settles with the error if the stream broke, else with undefined. Rejects with `TooLarge`. */
async function readUntilAnswered(
  { body }: HttpResponse,
  exchange: Exchange,
  options: ReceiveOptions & { position: Resume },
): Promise<unknown> {
  const { position, maxBytes, stream, onEvent } = options;
  let late: NodeJS.Timeout | undefined;
  exchange.onAnswered = () => {
    late ??= setTimeout(() => body.destroy(), AFTER_ANSWER_MS);
  };
  try {
    await readEvents(body, {
      maxBytes,
      noise: stream.noise,
      onEvent: (event) => {
        if (event.data.length > 0) position.onMessage();
        return onEvent(event);
      },
      onId: position.onId,
      onRetry: position.onRetry,
    });
    return undefined;
  } catch (error) {
    if (error instanceof TooLarge) throw error;
    return error;
  } finally {
    clearTimeout(late);
  }
}
