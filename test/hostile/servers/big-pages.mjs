// Lists one tool a page, each page with another cursor of 10 MB, for ever.
import { seen, serve, tool } from "./lib.mjs";

let page = 0;
serve({
  "tools/list": () => {
    page++;
    if (page === 3) seen("third page");
    return { tools: [tool(`tool${page}`)], nextCursor: `${page}${"c".repeat(10_000_000)}` };
  },
});
