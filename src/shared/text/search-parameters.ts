/** The parameters of ToolSearch, in Pi and in `pi-mcp-threads serve`. Apart from naming.ts, which more is loaded with. Pure. */
import { LIMITS } from "../protocol/limits.ts";

export const TOOL_SEARCH_PARAMETERS = {
  type: "object",
  properties: {
    query: {
      type: "string",
      description: "What the tool should do, or select:name1,name2.",
    },
    server: {
      type: "string",
      description: "Only tools of this server. Set it whenever one fits: more often right.",
    },
    limit: {
      type: "integer",
      minimum: 1,
      maximum: LIMITS.searchResultsMost,
      description: `${LIMITS.searchResults} by default.`,
    },
  },
  required: ["query"],
  additionalProperties: false,
};
