// Sends one notification the given number of times, as fast as it is read:
// `floods-notifications.mjs 300000 <method> <params>`.
import { seen, serve } from "./lib.mjs";

const [count, method, params] = process.argv.slice(2);
const line = `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${params}}\n`;
serve({
  "tools/list": () => {
    setTimeout(flood, 0, Number(count));
    return { tools: [] };
  },
});
function flood(left) {
  if (left <= 0) seen("sent");
  else process.stdout.write(line.repeat(1_000), () => flood(left - 1_000));
}
