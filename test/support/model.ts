/**
 * Owns: a scripted model. This HTTP server on 127.0.0.1 answers Pi's requests turn by turn and records them.
 * Must not: encode chunks (model-stream.ts) or start Pi.
 * Called by: end-to-end tests and benches, which hand it to pi-run.ts.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { encodeTurn, type ModelTurn } from "./model-stream.ts";

export type { ModelTurn } from "./model-stream.ts";

/** Content is a string or, for user and tool messages, sometimes a list of parts. */
export interface ModelMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content: string | null | readonly { type: string; text?: string; [key: string]: unknown }[];
  tool_calls?: readonly { id: string; type: "function"; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

export interface ModelTool {
  type: "function";
  function: { name: string; description?: string; parameters?: Record<string, unknown> };
}

/** One request from Pi. */
export interface ModelRequest {
  /** 0 for the first request. */
  index: number;
  /** Milliseconds since the epoch, with fractions: comparable with `startedAtMs` of a run. */
  arrivedAtMs: number;
  messages: readonly ModelMessage[];
  tools: readonly ModelTool[];
  /** Names of the declared tools, in the order of declaration. */
  toolNames: readonly string[];
  /** The raw JSON text of the body. */
  body: string;
}

type Answer = ModelTurn | undefined;

/**
 * A list gives the turns in order, as values or computed from the request; a function answers every request.
 * After the end of the list, or for `undefined`, the answer is the text "done".
 */
export type ModelScript =
  | readonly (ModelTurn | ((request: ModelRequest) => Answer | Promise<Answer>))[]
  | ((request: ModelRequest) => Answer | Promise<Answer>);

export interface ScriptedModel {
  /** The base URL for models.json: `http://127.0.0.1:<port>/v1`. */
  url: string;
  /** All requests so far, oldest first. */
  requests: readonly ModelRequest[];
  /** Forgets the requests so far. The next one has the index 0. */
  forget(): void;
  /** Closes the server and its connections, answered or not. */
  close(): Promise<void>;
}

/** Starts the server on a free port. A turn that throws is answered with status 500 and the error's message. */
export async function startModel(script: ModelScript = []): Promise<ScriptedModel> {
  const requests: ModelRequest[] = [];
  const server = createServer((incoming, response) => {
    void answer(incoming, response, script, requests);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the model server has no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    requests,
    forget: () => {
      requests.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The text that each tool call gave the model, in order, without images. */
export function toolResultTexts(request: ModelRequest): string[] {
  return request.messages.filter((message) => message.role === "tool").map(messageText);
}

/** The text of a message, parts joined by line breaks. */
export function messageText(message: ModelMessage): string {
  if (message.content === null) return "";
  if (typeof message.content === "string") return message.content;
  return message.content
    .map((part) => part.text)
    .filter((text) => text !== undefined)
    .join("\n");
}

async function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  script: ModelScript,
  requests: ModelRequest[],
): Promise<void> {
  const arrivedAtMs = performance.timeOrigin + performance.now();
  try {
    const body = await readBody(incoming);
    if (incoming.method !== "POST" || incoming.url !== "/v1/chat/completions") {
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: `no route ${incoming.method} ${incoming.url}` } }));
      return;
    }
    const request = parseRequest(body, requests.length, arrivedAtMs);
    requests.push(request);
    const turn = (await nextTurn(script, request)) ?? { text: "done" };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(encodeTurn(turn, request.index));
  } catch (error) {
    if (response.headersSent || response.destroyed) return;
    response.writeHead(500, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: `scripted model: ${String(error)}` } }));
  }
}

function nextTurn(script: ModelScript, request: ModelRequest): Answer | Promise<Answer> {
  if (typeof script === "function") return script(request);
  const turn = script[request.index];
  return typeof turn === "function" ? turn(request) : turn;
}

function parseRequest(body: string, index: number, arrivedAtMs: number): ModelRequest {
  const parsed = JSON.parse(body) as { messages: ModelMessage[]; tools?: ModelTool[] };
  const tools = parsed.tools ?? [];
  return {
    index,
    arrivedAtMs,
    messages: parsed.messages,
    tools,
    toolNames: tools.map((tool) => tool.function.name),
    body,
  };
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
