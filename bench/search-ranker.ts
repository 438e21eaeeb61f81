/** Our ranking behind the interface of ../shared/search/evaluate.mjs: the index and the scoring of ToolSearch. */
export { createRanker } from "../test/support/search-data.ts";
