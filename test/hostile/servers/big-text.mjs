// Answers a call with one plain text of so many MiB: `big-text.mjs 60`. No attack: it must work.
import { seen, send, serve } from "./lib.mjs";

const bytes = Number(process.argv[2]) * 2 ** 20;
serve({
  "tools/call": ({ id }) => {
    const line = "a line of plain text that says nothing\n";
    const words = `first words\n${line.repeat(Math.floor(bytes / line.length))}last words`;
    send({ id, result: { content: [{ type: "text", text: words }] } }, () => seen("sent"));
  },
});
