// Writes its answer to tools/list one byte every 20 ms.
import { seen, serve } from "./lib.mjs";

serve({
  "tools/list": ({ id }) => {
    const line = `{"jsonrpc":"2.0","id":${id},"result":{"tools":[${" ".repeat(100_000)}]}}\n`;
    let at = 0;
    setInterval(() => at < line.length && process.stdout.write(line[at++]), 20);
    seen("drips");
  },
});
