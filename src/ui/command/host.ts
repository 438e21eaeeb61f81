/** The part of the session that `/mcp` needs. */
import type { PanelHost } from "../panel/panel.ts";

export interface McpCommandHost extends PanelHost {}
