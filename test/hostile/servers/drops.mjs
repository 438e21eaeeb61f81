// Answers initialize and tools/list, then ends. Records the time of each start in ms since the epoch.
import { seen, serve, tool } from "./lib.mjs";

seen(`start ${Date.now()}`);
serve({
  "tools/list": () => {
    setTimeout(() => process.exit(0), 30);
    return { tools: [tool("work")] };
  },
});
