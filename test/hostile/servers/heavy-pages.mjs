// Lists pages of a hundred tools with schemas of 100 KB without end; each page has a new cursor.
import { seen, serve } from "./lib.mjs";

let page = 0;
const description = "w".repeat(100_000);
const inputSchema = { type: "object", properties: { a: { type: "string", description } } };
/** What follows the name of each tool, made once: making it costs as much as reading it. */
const rest = JSON.stringify({ description: "Does work.", inputSchema }).slice(1);
seen(`pid ${process.pid}`);
serve({
  "tools/list": ({ id }) => {
    page++;
    if (page === 3) seen("third page");
    process.stdout.write(
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"nextCursor":"page ${page}","tools":[`,
    );
    for (let i = 0; i < 100; i++)
      process.stdout.write(`${i === 0 ? "" : ","}{"name":"tool_${page}_${i}",${rest}`);
    process.stdout.write("]}}\n");
    return undefined;
  },
});
