// Lists its tools once, says every 100 ms that they have changed, and refuses each further list with 429 and the given
// Retry-After: `busy-list.mjs 0`.
import { events, json, replyOf, resultOf, seen, serve } from "./lib.mjs";

const [retryAfter] = process.argv.slice(2);
let isListed = false;
serve({
  GET: (_message, _request, response) => {
    events(response);
    const changed = JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    const timer = setInterval(() => response.write(`data: ${changed}\n\n`), 100);
    response.on("close", () => clearInterval(timer));
  },
  "tools/list": (message, _request, response) => {
    if (!isListed) {
      isListed = true;
      json(response, replyOf(message, resultOf(message)));
      return;
    }
    seen("refused");
    response.writeHead(429, { "retry-after": retryAfter }).end("busy");
  },
});
