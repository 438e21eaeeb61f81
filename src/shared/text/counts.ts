/** Numbers with their nouns, and what a server offers, in words. Pure. */
import type { ServerStatus } from "../protocol/status.ts";

/** For example `1 tool`, `3 tools`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** For example `3 tools, 1 resource`. */
export function offerText({ toolsKnown, toolCount, resourceCount }: ServerStatus): string {
  if (!toolsKnown) return "tools unknown";
  const resources = resourceCount === 0 ? "" : `, ${counted(resourceCount, "resource")}`;
  return `${counted(toolCount, "tool")}${resources}`;
}
