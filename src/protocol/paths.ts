/** Names of the files that both sides must find. Pure: the caller joins and hashes. */
export const SNAPSHOT_FOLDER = "mcp-snapshots";
export const LOG_FILE = "mcp-threads.log";

/** File of a working directory's snapshot below the agent folder. `sha256Hex` hashes a string. */
export const snapshotFileName = (cwd: string, sha256Hex: (text: string) => string): string =>
  `${sha256Hex(cwd).slice(0, 32)}.bin`;
