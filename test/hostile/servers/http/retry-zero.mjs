// Ends its stream at once and asks the client to open it again after the given delay: `retry-zero.mjs 0`.
import { events, seen, serve } from "./lib.mjs";

const [retry] = process.argv.slice(2);
serve({
  GET: (_message, _request, response) => {
    seen("stream");
    events(response).end(`retry: ${retry}\nid: 1\ndata:\n\n`);
  },
});
