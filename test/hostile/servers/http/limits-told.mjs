// Refuses initialize with 429; the Retry-After header has the same number as a header of the client.
import { seen, serve } from "./lib.mjs";

serve({
  initialize: (_message, _request, response) => {
    seen("refused");
    response.writeHead(429, { "retry-after": "9000" }).end("too many: 9000");
  },
});
