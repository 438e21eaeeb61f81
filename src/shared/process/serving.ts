/**
 * Set for everything that a `pi-mcp-threads serve` starts: a `serve` among it would read the same files and start itself again,
 * without end.
 */
export const SERVING_VARIABLE = "PI_MCP_THREADS_SERVE";
