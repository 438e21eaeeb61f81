/** A text as one of Pi's content blocks. Pure. */
import type { ResultContent } from "../protocol/calls.ts";

export const textBlock = (text: string): Extract<ResultContent, { type: "text" }> => ({ type: "text", text });
