// Refuses a call with 429, whose headers hold the same number as a header that the client sent.
import { seen, serve } from "./lib.mjs";

serve({
  initialize: (_message, _request, response) => {
    seen("refused");
    response.writeHead(429, { "retry-after": "9000" }).end("too many: 9000");
  },
});
