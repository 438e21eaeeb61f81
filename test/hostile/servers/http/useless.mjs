// From each call of `work` on, sends what is of no use, for a time: `useless.mjs notifications ids 1000`. `notifications`: on
// the stream of notifications; `answer`: in the answer to the call; `gzip` and `br`: the same, compressed; `body`: in a
// JSON body; `error`: in the body of a refusal; `bytes`: in a JSON body whose every byte is a piece of its own.
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { fields, over } from "../useless-bytes.mjs";
import { events, json, replyOf, resultOf, serve, text } from "./lib.mjs";

const [where, what, forMs] = process.argv.slice(2);
const STREAM = { "content-type": "text/event-stream" };
const JSON_BODY = { "content-type": "application/json" };

/** Writes the piece again and again, then ends the answer. */
function flood(response, piece, isOver = over(Number(forMs))) {
  if (isOver() || response.destroyed) response.end();
  else response.write(piece, () => setImmediate(flood, response, piece, isOver));
}

/** 64 MiB, compressed to a thousandth of that. */
const many = () => Buffer.concat(Array.from({ length: 1_024 }, () => fields(what)));
const QUICKLY = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const PACKED =
  where === "gzip" ? gzipSync(many()) : where === "br" ? brotliCompressSync(many(), QUICKLY) : undefined;

const packed = (_message, response) =>
  response.writeHead(200, { ...STREAM, "content-encoding": where }).end(PACKED);

let stream;
const WAYS = {
  notifications: (message, response) => {
    flood(stream, fields(what));
    json(response, replyOf(message, text("floods")));
  },
  answer: (_message, response) => flood(response.writeHead(200, STREAM), fields(what)),
  body: (_message, response) => flood(response.writeHead(200, JSON_BODY), Buffer.alloc(65_536, " ")),
  error: (_message, response) => flood(response.writeHead(500, JSON_BODY), Buffer.alloc(65_536, " ")),
  bytes: (_message, response) => {
    response.writeHead(200, { ...JSON_BODY, "transfer-encoding": "chunked" }).flushHeaders();
    const { socket } = response;
    const piece = "1\r\n \r\n".repeat(10_000);
    const isOver = over(Number(forMs));
    const next = () => {
      if (isOver() || socket.destroyed) socket.destroy();
      else socket.write(piece, () => setImmediate(next));
    };
    next();
  },
};

serve({
  GET: (_message, _request, response) => {
    stream = events(response);
    stream.flushHeaders();
  },
  "tools/call": (message, _request, response) => (WAYS[where] ?? packed)(message, response),
  any: (message, _request, response) =>
    message.id === undefined
      ? response.writeHead(202).end()
      : json(response, replyOf(message, resultOf(message))),
});
