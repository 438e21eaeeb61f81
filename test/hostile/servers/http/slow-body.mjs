// Answers a method with a body that grows by one blank every 50 ms and never ends: `slow-body.mjs tools/list`.
import { seen, serve } from "./lib.mjs";

const [method] = process.argv.slice(2);
serve({
  [method]: (_message, _request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 50);
    response.on("close", () => clearInterval(timer));
    seen("drips");
  },
});
