/** What a server says of itself when it is asked (MCP 2026-07-28, server/discover). Pure. */
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { MODERN_VERSION } from "../memory/memory.ts";
import { quoted } from "./answers.ts";
import { EVERY_LIST } from "./offers.ts";

const VERSIONS_SHOWN = 5;

export interface Discovered {
  capabilities: Record<string, unknown>;
  instructions: string | undefined;
}

/** The server speaks only revisions that this client does not know. */
export const tooNew = (name: string, versions: readonly unknown[]): ThreadsError =>
  new ThreadsError(
    "connect_failed",
    `${name} speaks MCP ${versions.slice(0, VERSIONS_SHOWN).map(quoted).join(", ")}, and this client up to ${MODERN_VERSION}.`,
    { remedy: "A newer version of this extension may speak it.", data: { server: name } },
  );

/** `result`: of a server of this era, in any shape. Throws `connect_failed` if the server names only other revisions. */
export function readDiscovered(name: string, result: Record<string, unknown>): Discovered {
  const { supportedVersions: versions, capabilities, instructions } = result;
  if (Array.isArray(versions) && !versions.includes(MODERN_VERSION)) throw tooNew(name, versions);
  return {
    capabilities: isObject(capabilities) ? capabilities : EVERY_LIST,
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}
