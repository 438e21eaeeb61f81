/** The part of the session that `/mcp` needs. */
import type { Surroundings } from "../../report/doctor.ts";
import type { PanelHost } from "../panel/panel.ts";

export interface McpCommandHost extends PanelHost {
  /** What only main knows, for the doctor. */
  surroundings(): Surroundings & { agentDir: string };
}
