// Redirects every request to another path of the same server, without end.
import { serve } from "./lib.mjs";

let count = 0;
serve({
  any: (_message, _request, response) => response.writeHead(307, { location: `/mcp?${count++}` }).end(),
});
