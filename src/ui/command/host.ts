/** The part of the session that `/mcp` needs. */
import type { Catalog } from "../../catalog/catalog.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { ServerStatus } from "../../shared/protocol/status.ts";

export interface McpCommandHost {
  ask: Runtime["ask"];
  /** Asks the user again about the project's servers that were refused or put off. */
  askConsents(): Promise<void>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
}
