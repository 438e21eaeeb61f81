// Answers a call with one plain text of the given size in MiB: `big-text.mjs 60`. This is not an attack: the call must
// work.
import { seen, serve } from "./lib.mjs";

const bytes = Number(process.argv[2]) * 2 ** 20;
serve({
  "tools/call": ({ id }) => {
    // As JSON from the start: to quote so much text costs the server more than the client's work.
    const line = "a line of plain text that says nothing\\n";
    const block = line.repeat(Math.ceil(2 ** 20 / line.length));
    process.stdout.write(
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"first words\\n`,
    );
    for (let sent = 0; sent < bytes; sent += block.length) process.stdout.write(block);
    process.stdout.write(`last words"}]}}\n`, () => seen("sent"));
  },
});
