/** Owns: servers over HTTP, one for each path. The seed and the call's number decide the accidents in the answers. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import {
  type Json,
  mutateAnswer,
  mutateBytes,
  pickFrom,
  type Random,
  randomFor,
} from "../servers/mutations.ts";
import { accidentOf, numberOf, soundResult } from "../servers/sound-answers.ts";

const STATUSES = [200, 201, 202, 204, 206, 299, 302, 400, 401, 403, 404, 405, 409, 429, 500, 503] as const;
const TYPES = [
  ...["application/json", "text/event-stream", "application/json; charset=utf-16", "TEXT/EVENT-STREAM; a=b"],
  ...[
    "text/html",
    "",
    "application/json, text/event-stream",
    "multipart/mixed; boundary=x",
    "application/x-ndjson",
  ],
] as const;

/** Encodes messages as events, with odd line ends, extra fields, and accidents in the whole text. */
function eventsOf(pieces: readonly Buffer[], random: Random): Buffer {
  const end = pickFrom(random, ["\n", "\r\n", "\r"]);
  const fields = pickFrom(random, [
    "",
    ": words",
    "retry: 0",
    "retry: 99999999999999",
    "id: 7",
    "id",
    "event: odd",
    "\uFEFF",
  ]);
  const between = fields === "" ? "" : fields + end + (random.below(2) === 0 ? end : "");
  const events = pieces.flatMap((piece, i) => [
    Buffer.from(`${between}${random.below(2) === 0 ? `event: message${end}` : ""}id: ${i}${end}data: `),
    piece,
    Buffer.from(end + end),
  ]);
  const whole = Buffer.concat(events);
  return random.below(4) === 0 ? mutateBytes(whole, random) : whole;
}

function mutate(message: Json, response: ServerResponse, random: Random): void {
  const answer = { jsonrpc: "2.0", id: message.id, result: soundResult(message.method, message.params) };
  const pieces = mutateAnswer(answer, random);
  const isStream = random.below(2) === 0;
  const body = isStream ? eventsOf(pieces, random) : Buffer.concat(pieces);
  const headers: Record<string, string> = {
    "content-type": isStream ? "text/event-stream" : "application/json",
  };
  const at = random.below(body.length + 1);
  switch (random.below(16)) {
    case 0:
      headers["content-type"] = TYPES[random.below(TYPES.length)] ?? "";
      break;
    case 1:
    case 2:
      response.statusCode = STATUSES[random.below(STATUSES.length)] ?? 200;
      if (response.statusCode === 302) headers.location = pickFrom(random, ["/", "http://[", "/elsewhere"]);
      if (response.statusCode === 429) headers["retry-after"] = pickFrom(random, ["0", "-1", "1e9", "x"]);
      break;
    case 3:
      headers["content-encoding"] = pickFrom(random, ["gzip", "br", "odd"]);
      break;
    case 4:
      headers["content-length"] = String(Math.max(0, body.length + random.below(200) - 100));
      break;
    case 5:
      response.socket?.destroy();
      return;
    case 6:
      response.writeHead(200, headers).write(body.subarray(0, at), () => response.socket?.destroy());
      return;
    case 7:
      // This response never ends.
      response.writeHead(200, headers).write(body);
      return;
    case 8:
      response.socket?.end(
        mutateBytes(Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"), random),
      );
      return;
    default:
  }
  response.writeHead(response.statusCode, headers);
  response.write(body.subarray(0, at));
  setImmediate(() => response.end(body.subarray(at)));
}

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString("utf8")) as Json;
}

/** Counts the connections of each path; the first connection of a path is sound. */
export function mutatingHttp(seed: number): RequestListener {
  const connections = new Map<string, number>();
  let streams = 0;
  const post = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const message = await bodyOf(request);
    const path = request.url ?? "";
    if (message.method === "initialize") connections.set(path, (connections.get(path) ?? -1) + 1);
    const connection = connections.get(path) ?? 0;
    const accident = accidentOf(seed, { server: Number(path.slice(-1)), connection });
    if (message.id === undefined || message.method === undefined) response.writeHead(202).end();
    else if (message.method === "tools/call")
      mutate(message, response, randomFor(seed, numberOf(message.params)));
    else if (message.method === accident?.method) mutate(message, response, randomFor(seed, accident.number));
    else {
      const answer = { jsonrpc: "2.0", id: message.id, result: soundResult(message.method, message.params) };
      const session = message.method === "initialize" ? { "mcp-session-id": `${path}-${connection}` } : {};
      response.writeHead(200, { "content-type": "application/json", ...session }).end(JSON.stringify(answer));
    }
  };
  return (request, response) => {
    // The client may close the connection during the answer.
    response.on("error", () => undefined);
    if (request.method === "POST") post(request, response).catch(() => response.destroy());
    else if (request.method === "GET" && request.headers["last-event-id"] !== undefined)
      mutate({ id: 1, method: "tools/call" }, response, randomFor(seed, -1_000_000 - ++streams));
    else response.writeHead(request.method === "DELETE" ? 200 : 405).end();
  };
}
