/** The ranking of ToolSearch (index and scoring) with the interface of ../shared/search/evaluate.mjs. */
export { createRanker } from "../test/support/search-data.ts";
