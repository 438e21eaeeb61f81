/** Names of files below the agent folder that both sides must find. Pure: the caller joins paths and hashes. */
export const SNAPSHOT_FOLDER = "mcp-snapshots";
export const LOG_FILE = "mcp-threads.log";

/** Identifies a snapshot: the working directory, and the file that `--mcp-config` puts in place of the user's own. */
export interface SnapshotKey {
  cwd: string;
  /** Absolute. */
  configFile?: string | undefined;
}

/** Name of the snapshot's file in `SNAPSHOT_FOLDER`. `sha256Hex` hashes a string. */
export const snapshotFileName = (
  { cwd, configFile }: SnapshotKey,
  sha256Hex: (text: string) => string,
): string => `${sha256Hex(configFile === undefined ? cwd : `${cwd}\u0000${configFile}`).slice(0, 32)}.bin`;
