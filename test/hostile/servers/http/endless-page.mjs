// Answers every request with a web page that never ends.
import { seen, serve } from "./lib.mjs";

const chunk = "<p>\u009b2J Welcome</p>".repeat(3_000);
serve({
  any: (_message, _request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    seen("floods");
    const flood = () => {
      if (!response.destroyed) response.write(chunk, () => setImmediate(flood));
    };
    flood();
  },
});
