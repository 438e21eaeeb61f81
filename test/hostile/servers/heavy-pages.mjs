// Lists pages of a hundred tools with schemas of 100 KB without end; each page has a new cursor.
import { seen, serve, tool } from "./lib.mjs";

let page = 0;
const description = "w".repeat(100_000);
seen(`pid ${process.pid}`);
serve({
  "tools/list": () => {
    page++;
    if (page === 3) seen("third page");
    const inputSchema = { type: "object", properties: { a: { type: "string", description } } };
    return {
      tools: Array.from({ length: 100 }, (_, i) => tool(`tool_${page}_${i}`, { inputSchema })),
      nextCursor: `page ${page}`,
    };
  },
});
