// Knows only legacy SSE. Its answer to the POST of a call never ends, while the result comes over the stream.
import { events, replyOf, seen, serve } from "./lib.mjs";

let stream;
serve({
  GET: (_message, _request, response) => {
    stream = events(response);
    stream.write("event: endpoint\ndata: /mcp?legacy\n\n");
  },
  any: (message, request, response) => {
    if (!request.url.includes("legacy")) return response.writeHead(405).end();
    response.writeHead(202);
    if (message.method === "tools/call") {
      response.write(" ");
      response.on("close", () => seen("post closed"));
      seen("post open");
    } else response.end();
    if (message.id !== undefined) stream.write(`data: ${replyOf(message)}\n\n`);
  },
});
