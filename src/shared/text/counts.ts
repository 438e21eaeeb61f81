/** What a server has to offer, in words. Pure. */
import type { ServerStatus } from "../protocol/status.ts";

export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

export function offerText({ toolsKnown, toolCount, resourceCount }: ServerStatus): string {
  if (!toolsKnown) return "tools unknown";
  const resources = resourceCount === 0 ? "" : `, ${counted(resourceCount, "resource")}`;
  return `${counted(toolCount, "tool")}${resources}`;
}
