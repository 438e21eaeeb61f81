/** Texts among Pi's content blocks. Pure. */
import type { ResultContent } from "../protocol/calls.ts";

type TextBlock = Extract<ResultContent, { type: "text" }>;

export const textBlock = (text: string): TextBlock => ({ type: "text", text });

export const isTextBlock = (block: ResultContent): block is TextBlock => block.type === "text";
