// Writes the value of SECRET to stderr in two halves, 200 ms apart.
import { seen, serve } from "./lib.mjs";

const { SECRET = "" } = process.env;
serve({
  "tools/list": () => {
    const half = Math.floor(SECRET.length / 2);
    process.stderr.write(`cannot log in with ${SECRET.slice(0, half)}`);
    setTimeout(() => process.stderr.write(`${SECRET.slice(half)} today\n`, () => seen("leaked")), 200);
    return { tools: [] };
  },
});
