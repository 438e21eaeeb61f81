// Answers initialize and tools/list, then sends requests as fast as it can and never reads an answer.
import { seen, serve, tool } from "./lib.mjs";

const chunk =
  '{"jsonrpc":"2.0","id":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","method":"roots/list"}\n'.repeat(
    500,
  );
const ask = () => process.stdout.write(chunk, ask);
seen(`pid ${process.pid}`);
serve({
  "tools/list": () => {
    setTimeout(() => {
      process.stdin.pause();
      process.stdin.removeAllListeners("data");
      seen("asks");
      ask();
    }, 20);
    return { tools: [tool("work")] };
  },
});
