// Answers tools/list with a list of the given size in MiB that repeats one value: `floods-list.mjs 60 '{}'`.
import { seen, serve } from "./lib.mjs";

const [mebibytes, value] = process.argv.slice(2);
serve({
  "tools/list": ({ id }) => {
    const piece = `${value},`.repeat(Math.ceil(2 ** 20 / (value.length + 1)));
    process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[`);
    for (let i = 0; i < Number(mebibytes); i++) process.stdout.write(piece);
    process.stdout.write(`${value}]}}\n`, () => seen("sent"));
  },
});
