// Answers a call with one plain text of the given size in MiB: `big-text.mjs 60`. This is not an attack: the call must
// work.
import { seen, send, serve } from "./lib.mjs";

const bytes = Number(process.argv[2]) * 2 ** 20;
serve({
  "tools/call": ({ id }) => {
    const line = "a line of plain text that says nothing\n";
    const words = `first words\n${line.repeat(Math.floor(bytes / line.length))}last words`;
    send({ id, result: { content: [{ type: "text", text: words }] } }, () => seen("sent"));
  },
});
