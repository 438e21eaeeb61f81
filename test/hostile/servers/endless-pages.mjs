// Lists pages of a hundred tools without end; each page has a new cursor.
import { seen, serve, tool } from "./lib.mjs";

let page = 0;
serve({
  "tools/list": () => {
    page++;
    if (page === 20) seen("twentieth page");
    return {
      tools: Array.from({ length: 100 }, (_, i) => tool(`tool_${page}_${i}`)),
      nextCursor: `page ${page}`,
    };
  },
});
