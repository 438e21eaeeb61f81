/** The screen that a dialog has. */
import type { PiContext } from "../../pi/api.ts";
import type { Screen } from "./pages.ts";

/** Size of the terminal; undefined if Pi does not draw on it. */
export const screenOf = ({ mode }: PiContext): Screen | undefined =>
  mode === "tui" ? { columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 } : undefined;
