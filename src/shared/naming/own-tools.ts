/** Names of the tools through which the model reaches all others. */
export const TOOL_SEARCH = "ToolSearch";
export const PROXY_TOOL = "mcp";
