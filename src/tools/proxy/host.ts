/** What the proxy tool needs of the session. */
import type { ToolHost } from "../tool-search/tool-search.ts";

export type ProxyHost = Pick<
  ToolHost,
  "settle" | "catalog" | "servers" | "provide" | "forModel" | "matchTools" | "connect" | "whyMissing"
>;
