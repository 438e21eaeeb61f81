// Answers a call with a stream that ends before the answer and asks the client to resume without a delay.
import { events, seen, serve } from "./lib.mjs";

let count = 0;
const cut = (response) => events(response).end(`retry: 0\nid: ${count++}\ndata:\n\n`);
serve({
  "tools/call": (_message, _request, response) => cut(response),
  GET: (_message, request, response) => {
    if (request.headers["last-event-id"] === undefined) return response.writeHead(405).end();
    seen("resumed");
    cut(response);
  },
});
