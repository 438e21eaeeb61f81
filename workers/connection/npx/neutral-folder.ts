/**
 * Owns the folder in which npm runs for a server whose folder the user did not choose. npm reads the `.npmrc`, the
 * packages and the workspaces of the folder in which it runs and of the folders above, so it must not run in a clone.
 * Its own package.json makes this folder a project for npm, and npm looks no further up.
 */
import { randomBytes } from "node:crypto";
import { mkdir, realpath, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import {
  PRIVATE_FILE,
  PRIVATE_FOLDER,
  readRegularText,
  SMALL_FILE_BYTES,
} from "../../shared/files/read-regular.ts";
import { onWindows, systemShell } from "../../shared/programs/processes.ts";

export interface NeutralFolder {
  path: string;
  /**
   * A shell for npm that enters the folder in FOLDER_VARIABLE before it starts a server. Undefined on Windows, where
   * npm cannot start a script, and if the folder cannot be made.
   */
  shell: string | undefined;
}

/** Variables for the shell: the folder of the server, and the user's own shell for npm if there is one. */
export const FOLDER_VARIABLE = "PI_MCP_NPX_FOLDER";
export const SHELL_VARIABLE = "PI_MCP_NPX_SHELL";

/** Without this flag npm would look for the workspaces of a folder above. */
export const NO_WORKSPACES = "--workspaces=false";

/** For the user alone, as all files here. */
const EXECUTABLE_FILE = 0o700;

const MANIFEST = `${JSON.stringify({
  private: true,
  description: "npm runs here for npx servers, so that no project decides what it runs.",
})}\n`;

/**
 * npm also uses this shell for the scripts of packages that it installs, which stay in their own folder. The program
 * that is started must not see the variables, or this shell would also run the scripts that the program starts.
 */
const SHELL = `#!${systemShell()}
# npm starts a server with this shell: the server runs in its own folder, npm itself does not.
folder=$${FOLDER_VARIABLE}
shell=\${${SHELL_VARIABLE}:-${systemShell()}}
unset npm_config_script_shell
if [ -n "$${SHELL_VARIABLE}" ]; then npm_config_script_shell=$shell; export npm_config_script_shell; fi
unset ${FOLDER_VARIABLE} ${SHELL_VARIABLE}
if [ "$npm_lifecycle_event" = npx ]; then
  cd -- "$folder" || exit 1
  INIT_CWD=$folder; export INIT_CWD
fi
exec "$shell" "$@"
`;

/** Replaces the file in one step, because another process may be reading it, and only if its text differs. */
async function put(file: string, text: string, mode: number): Promise<void> {
  const found = await readRegularText(file, SMALL_FILE_BYTES);
  if (found.kind === "text" && found.text === text) return;
  const temp = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  await writeFile(temp, text, { mode, flag: "wx" });
  await rename(temp, file);
}

async function prepare(folder: string): Promise<NeutralFolder> {
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
  // npm resolves the links in the folders that it names.
  const path = await realpath(folder);
  await put(join(path, "package.json"), MANIFEST, PRIVATE_FILE);
  if (onWindows) return { path, shell: undefined };
  const shell = join(path, "shell.sh");
  await put(shell, SHELL, EXECUTABLE_FILE);
  return { path, shell };
}

/** Makes the folder. If that fails, npm runs in the home folder, which also belongs to the user. */
export const neutralFolder = (folder: string): Promise<NeutralFolder> =>
  prepare(folder).catch(async () => {
    const home = homedir();
    return { path: await realpath(home).catch(() => home), shell: undefined };
  });
