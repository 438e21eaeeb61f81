/** The part of the session that the proxy tool needs. */
import type { ToolHost } from "../tool-search/tool-search.ts";

export type ProxyHost = Pick<
  ToolHost,
  "settle" | "catalog" | "servers" | "provide" | "forModel" | "tell" | "matchTools" | "connect" | "whyMissing"
>;
