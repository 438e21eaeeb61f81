/**
 * Set for everything that a `pi-mcp-threads serve` starts: a `serve` among it would read the same files and start itself again,
 * without end.
 */
export const SERVING_VARIABLE = "PI_MCP_THREADS_SERVE";

/** Holds the token of `serve --http`. */
export const SERVE_TOKEN_VARIABLE = "PI_MCP_THREADS_TOKEN";
