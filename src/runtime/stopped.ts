/** The message of the error `runtime_stopped`, the same wherever a request meets the end of the session. */
export const STOPPED = "The MCP servers of this session are stopped.";
