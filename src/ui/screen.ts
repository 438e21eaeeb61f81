/** The screen that a dialog has. */
import type { PiContext } from "../pi/api.ts";

export interface Screen {
  columns: number;
  rows: number;
}

/** Size of the terminal; undefined if Pi does not draw on it. */
export const screenOf = ({ mode }: Pick<PiContext, "mode">): Screen | undefined =>
  mode === "tui" ? { columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 } : undefined;
