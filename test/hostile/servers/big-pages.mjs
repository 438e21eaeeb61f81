// Lists pages of one tool without end; each page has a new cursor of 10 MB.
import { seen, serve, tool } from "./lib.mjs";

let page = 0;
serve({
  "tools/list": () => {
    page++;
    if (page === 3) seen("third page");
    return { tools: [tool(`tool${page}`)], nextCursor: `${page}${"c".repeat(10_000_000)}` };
  },
});
