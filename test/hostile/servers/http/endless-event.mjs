// Answers a method with one server-sent event that never ends: `endless-event.mjs tools/list line` writes one endless
// line, and `lines 80` writes many lines of 80 characters.
import { events, seen, serve } from "./lib.mjs";

const [method, kind, length] = process.argv.slice(2);
const chunk =
  kind === "line"
    ? "x".repeat(64 * 1024)
    : `data: ${"x".repeat(Number(length))}\n`.repeat(Math.ceil(60_000 / Number(length)));
serve({
  [method]: (_message, _request, response) => {
    events(response).write(kind === "line" ? "data: " : "");
    const flood = () => {
      if (!response.destroyed) response.write(chunk, () => setImmediate(flood));
    };
    flood();
    seen("floods");
  },
});
