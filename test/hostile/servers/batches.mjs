// Sends JSON-RPC batches: a batch of 200,000 notifications, an empty batch, and a notification in 5,000 nested lists.
import { seen, serve } from "./lib.mjs";

const one = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
serve();
process.stdout.write(
  `[${`${one},`.repeat(200_000)}${one}]\n[]\n${"[".repeat(5_000)}${one}${"]".repeat(5_000)}\n`,
  () => seen("sent"),
);
