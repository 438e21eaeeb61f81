// Answers initialize and tools/list, then ends: late enough for a client on a busy machine to be connected before. Records the time of each start in ms since the epoch.
import { seen, serve, tool } from "./lib.mjs";

seen(`start ${Date.now()}`);
serve({
  "tools/list": () => {
    setTimeout(() => process.exit(0), 500);
    return { tools: [tool("work")] };
  },
});
