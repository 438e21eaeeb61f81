// Lists pages of tools without end; each page has a new cursor: `endless-pages.mjs 100` has 100 tools on each page.
import { seen, serve, tool } from "./lib.mjs";

const length = Number(process.argv[2]);
let page = 0;
serve({
  "tools/list": () => {
    page++;
    if (page === 20) seen("twentieth page");
    return {
      tools: Array.from({ length }, (_, i) => tool(`tool_${page}_${i}`)),
      nextCursor: `page ${page}`,
    };
  },
});
