/** What a server can do (MCP 2026-07-28, server/discover), and how a later session remembers it. Pure. */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";

const OFFERS = ["tools", "resources", "prompts", "completions", "logging"];
const CHANGED = ".listChanged";

/** What a server can do, as words that are kept: `tools`, `tools.listChanged`. `capabilities`: of `server/discover`. */
export const offersOf = (capabilities: Record<string, unknown>): string[] =>
  OFFERS.flatMap((key) => {
    const can = capabilities[key];
    if (!isObject(can)) return [];
    return can.listChanged === true ? [key, `${key}${CHANGED}`] : [key];
  });

/** The capabilities of these words. */
export const capabilitiesFrom = (offers: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    OFFERS.filter((key) => offers.includes(key)).map((key) => [
      key,
      offers.includes(`${key}${CHANGED}`) ? { listChanged: true } : {},
    ]),
  );

/** A server that does not say what it can do is asked for everything. */
export const EVERY_LIST = capabilitiesFrom(["tools", "resources", "prompts"]);
