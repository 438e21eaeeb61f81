/** Where the sign-in of a server lies below the agent folder. Pure. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { SIGN_IN_FOLDER } from "../../../../src/shared/snapshot/contract.ts";

export interface Place {
  /** `<agentDir>/mcp-oauth`. */
  root: string;
  /** The server's folder in it. */
  folder: string;
  /** The sign-in for one url of the server. */
  file: string;
  /** `tokens.json`, which other programs write. */
  given: string;
}

const URL_HASH_CHARS = 16;
const NAME_HASH_CHARS = 32;

/** Windows opens a device for these names, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
/**
 * Other programs make folders whose names start with `sha256-`: the MCP adapter imports such a folder and removes it.
 * `h-` marks the folders below.
 */
const TAKEN = /^(sha256-|h-)/i;

const hashOf = (text: string, chars: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, chars);

/** Whether every file system keeps the name as it is. Windows drops a dot at the end. */
const isPlain = (server: string): boolean =>
  /^[\w.-]{1,64}$/.test(server) && !server.endsWith(".") && !DEVICE.test(server) && !TAKEN.test(server);

/** The server's name, or `h-<hash>` for a name that is no safe name of a folder. */
export const folderNameOf = (server: string): string =>
  isPlain(server) ? server : `h-${hashOf(server, NAME_HASH_CHARS)}`;

/**
 * The start of the url's SHA-256. Names that differ only in case share a folder on macOS and Windows, so a name with
 * capital letters is part of the hash: `Linear` and `linear` never share a file.
 */
export const fileNameOf = (server: string, url: string): string =>
  `${hashOf(server === server.toLowerCase() ? url : `${url}\n${server}`, URL_HASH_CHARS)}.json`;

export function placeOf({ agentDir, server, url }: { agentDir: string; server: string; url: string }): Place {
  const root = join(agentDir, SIGN_IN_FOLDER);
  const folder = join(root, folderNameOf(server));
  return { root, folder, file: join(folder, fileNameOf(server, url)), given: join(folder, "tokens.json") };
}
