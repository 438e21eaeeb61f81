/** What `/mcp` needs of the session. */
import type { Catalog } from "../../catalog/catalog.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { ServerStatus } from "../../shared/protocol/status.ts";

export interface McpCommandHost {
  ask: Runtime["ask"];
  /** Asks again for the project's servers that were refused or put off. */
  askConsents(): Promise<void>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
}
