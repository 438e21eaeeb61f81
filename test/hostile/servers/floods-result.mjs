// Answers a call with content of the given size in MiB that repeats one value: `floods-result.mjs 60 '{}'`. The third
// argument `structured` puts the list into structuredContent.
import { seen, serve } from "./lib.mjs";

const [mebibytes, value, where] = process.argv.slice(2);
const [before, after] =
  where === "structured" ? ['"content":[],"structuredContent":{"list":[', "]}"] : ['"content":[', "]"];
serve({
  "tools/call": ({ id }) => {
    const piece = `${value},`.repeat(Math.ceil(2 ** 20 / (value.length + 1)));
    process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{${before}`);
    for (let i = 0; i < Number(mebibytes); i++) process.stdout.write(piece);
    process.stdout.write(`${value}${after}}}\n`, () => seen("sent"));
  },
});
