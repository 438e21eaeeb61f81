/** Names of files below the agent folder that both sides must find. Pure: the caller joins paths and hashes. */
export const SNAPSHOT_FOLDER = "mcp-snapshots";
export const LOG_FILE = "mcp-threads.log";
export const SIGN_IN_FOLDER = "mcp-oauth";

/** Names a snapshot: there is one for each working directory and `--mcp-config` file. */
export interface SnapshotKey {
  cwd: string;
  /** Absolute path of the file that `--mcp-config` names; undefined if the user's own file is read. */
  configFile?: string | undefined;
}

/** Name of the snapshot's file in `SNAPSHOT_FOLDER`. `sha256Hex` answers the SHA-256 of a text in hexadecimal. */
export const snapshotFileName = (
  { cwd, configFile }: SnapshotKey,
  sha256Hex: (text: string) => string,
): string => `${sha256Hex(configFile === undefined ? cwd : `${cwd}\u0000${configFile}`).slice(0, 32)}.bin`;
