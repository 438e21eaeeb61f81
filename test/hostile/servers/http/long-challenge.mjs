// Answers initialize with 401 and a challenge as long and as full of escape sequences as Node's HTTP client accepts.
import { CANARY_URL, seen, serve } from "./lib.mjs";

const part = `Bearer realm="x", error="invalid_token", error_description="\x85\x9b2J", resource_metadata="${CANARY_URL}/meta", `;
serve({
  initialize: (_message, _request, response) => {
    seen("sent");
    response.writeHead(401, { "www-authenticate": part.repeat(100) }).end();
  },
});
