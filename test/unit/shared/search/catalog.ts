/**
 * A small catalog that the search tests share, and the function with which they search it.
 */
import { buildIndex } from "../../../../src/shared/search/build.ts";
import { openIndex } from "../../../../src/shared/search/index-format.ts";
import { type SearchOptions, searchIndex } from "../../../../src/shared/search/ranked.ts";
import type { SearchTool } from "../../../../src/shared/search/weights.ts";

const properties = (...names: string[]): unknown => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
});

export const catalog: SearchTool[] = [
  {
    server: "github",
    name: "create_issue",
    description: "Create a new issue in a repository.",
    inputSchema: properties("owner", "repo", "title", "labels"),
  },
  {
    server: "github",
    name: "create_pull_request",
    description: "Create a new pull request in a GitHub repository.",
  },
  { server: "github", name: "list_branches", description: "List branches of a repository." },
  {
    server: "files",
    name: "read_file",
    description: "Read the complete contents of a file.",
    inputSchema: properties("path", "encoding"),
  },
  { server: "files", name: "write-file", description: "Write text to a file, replacing what it held." },
  { server: "files", name: "listDirectory", description: "List what a directory holds." },
  { server: "weather", name: "get_forecast", description: "Weather forecast for a location and date." },
  { server: "tickets", name: "create_issue", description: "File a new ticket." },
  { server: "web", name: "search", description: "Search the web." },
  { server: "papers", name: "search", description: "Search scientific articles." },
  { server: "reports", name: "Summarize Report", description: "Summarize a report." },
  { server: "db", name: "mysql_query", description: "Run a statement on a MySQL database." },
  { server: "news-cn", name: "get-rank", description: "获取微信读书排行榜，包含热门小说、畅销书籍" },
  { server: "news-jp", name: "tenki", description: "東京の天気予報を検索します" },
  { server: "news-kr", name: "nalssi", description: "서울 날씨 정보를 검색합니다" },
  { server: "math", name: "sequentialthinking", description: "Reason in steps." },
];

export function searcher(
  tools: readonly SearchTool[] = catalog,
): (
  query: string,
  limit?: number,
  options?: SearchOptions,
) => { ids: string[]; scores: number[]; pinned: string[]; unmatched: readonly string[] } {
  const index = openIndex(buildIndex(tools));
  return (query, limit = 5, options = {}) => {
    const { hits, unmatched } = searchIndex(index, query, limit, options);
    const id = (tool: number): string => `${tools[tool]!.server}/${tools[tool]!.name}`;
    return {
      ids: hits.map(({ tool }) => id(tool)),
      scores: hits.map(({ score }) => score),
      pinned: hits.filter(({ pinned }) => pinned).map(({ tool }) => id(tool)),
      unmatched,
    };
  };
}
