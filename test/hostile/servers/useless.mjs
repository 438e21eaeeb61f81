// Answers correctly, and from each call of `work` on writes what is of no use: `useless.mjs stdout "empty lines" 1000`, for
// a second.
import { serve, text } from "./lib.mjs";
import { lines, over } from "./useless-bytes.mjs";

const [where, what, forMs] = process.argv.slice(2);
const chunk = lines(what);
const flood = (isOver) => {
  if (!isOver()) process[where].write(chunk, () => flood(isOver));
};
serve({
  "tools/call": () => {
    flood(over(Number(forMs)));
    return text("floods");
  },
});
