// Answers a call with a batch of small messages, gzipped, and the answer last: `batch.mjs 300000 2025-03-26 [stream]`. The
// second argument is the revision that the server speaks, `stream` sends the batch as one event.
import { gzipSync } from "node:zlib";
import { hello } from "../lib.mjs";
import { json, replyOf, resultOf, seen, serve } from "./lib.mjs";

const [messages, protocolVersion, how] = process.argv.slice(2);
const NOTE = '{"jsonrpc":"2.0","method":"notifications/x"}';
serve({
  initialize: (message, _request, response) =>
    json(response, replyOf(message, hello(message, { protocolVersion }))),
  "tools/call": (message, _request, response) => {
    const batch = `[${`${NOTE},`.repeat(Number(messages))}${replyOf(message, resultOf(message))}]`;
    response.on("finish", () => seen("sent"));
    const headers = { "content-encoding": "gzip" };
    if (how === "stream")
      response
        .writeHead(200, { ...headers, "content-type": "text/event-stream" })
        .end(gzipSync(`data: ${batch}\n\n`));
    else json(response, gzipSync(batch), headers);
  },
});
