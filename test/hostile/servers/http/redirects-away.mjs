// Redirects a method to the canary, another origin: `redirects-away.mjs initialize 307`.
import { CANARY_URL, seen, serve } from "./lib.mjs";

const [method, status] = process.argv.slice(2);
serve({
  [method]: (_message, _request, response) => {
    seen("redirects");
    response.writeHead(Number(status), { location: `${CANARY_URL}/stolen` }).end();
  },
});
