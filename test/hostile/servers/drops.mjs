// Answers initialize and tools/list, then ends. Says when it is started.
import { seen, serve, tool } from "./lib.mjs";

seen("start");
serve({
  "tools/list": () => {
    setTimeout(() => process.exit(0), 30);
    return { tools: [tool("work")] };
  },
});
