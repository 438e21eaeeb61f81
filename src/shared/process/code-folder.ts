/**
 * The folder of Node's compile cache. Node runs what it finds there as the code of this package, and its own choice lies
 * in the temp folder, where another user of the machine may have made it first. Pure: the caller passes Node's modules.
 */

interface Found {
  uid: number;
  mode: number;
  isDirectory(): boolean;
}

export interface FolderFiles {
  fs: {
    mkdirSync(path: string, options: { mode: number }): unknown;
    realpathSync(path: string): string;
    lstatSync(path: string): Found;
  };
  path: {
    join(...parts: string[]): string;
    dirname(path: string): string;
    isAbsolute(path: string): boolean;
  };
  /** The user's id; undefined on Windows, where a home is private by its access list. */
  uid: number | undefined;
}

/** Below the agent folder. */
const CODE_FOLDER = "mcp-code";
const GROUP_OR_OTHERS_WRITE = 0o022;
const OTHERS_WRITE = 0o002;
/** In a sticky folder, such as the temp folder, nobody replaces what another user owns. */
const STICKY = 0o1000;

/**
 * The user's own folder for compiled code, which is made if the agent folder is there. Undefined if another user could
 * have put code into it: then this package uses no cache. Members of a group that may write the agent folder itself
 * write its mcp.json as well, so only the folder of the code is closed to them. Never throws.
 */
export function codeFolder(agentDir: string, { fs, path, uid }: FolderFiles): string | undefined {
  // A relative folder would lie in whatever folder the process runs in, which decides nothing.
  if (!path.isAbsolute(agentDir)) return undefined;
  try {
    // The user could not use what root makes there (below).
    if (uid === 0 && fs.lstatSync(agentDir).uid !== 0) return undefined;
    const named = path.join(agentDir, CODE_FOLDER);
    try {
      fs.mkdirSync(named, { mode: 0o700 });
    } catch (error) {
      if ((error as { code?: string }).code !== "EEXIST") return undefined;
    }
    // A link is as good as the folder that it leads to: all that is above the real folder is looked at.
    const folder = fs.realpathSync(named);
    const found = fs.lstatSync(folder);
    if (!found.isDirectory()) return undefined;
    if (uid === undefined) return folder;
    if (found.uid !== uid || (found.mode & GROUP_OR_OTHERS_WRITE) !== 0) return undefined;
    for (let at = path.dirname(folder); ; at = path.dirname(at)) {
      const { uid: owner, mode } = fs.lstatSync(at);
      if (owner !== uid && owner !== 0) return undefined;
      if ((mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0) return undefined;
      if (path.dirname(at) === at) return folder;
    }
  } catch {
    // Without the cache a start only takes longer.
    return undefined;
  }
}
