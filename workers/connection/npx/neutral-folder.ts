/**
 * The folder in which npm runs for a server that no file of the project defines. npm reads the `.npmrc`, the packages
 * and the workspaces of the folder in which it runs and of those above it, so it must not run in a clone. A
 * package.json of its own makes this folder a project for npm, and npm looks no further up.
 */
import { randomBytes } from "node:crypto";
import { mkdir, realpath, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { readRegularText, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";
import { onWindows, systemShell } from "../../shared/programs/processes.ts";

export interface NeutralFolder {
  path: string;
  /**
   * A shell for npm that enters the folder named by FOLDER_VARIABLE before it starts a server. Undefined on Windows,
   * where npm cannot start a script, and where the folder cannot be made.
   */
  shell: string | undefined;
}

/** For the shell: the folder of the server, and the user's own shell for npm where there is one. */
export const FOLDER_VARIABLE = "PI_MCP_NPX_FOLDER";
export const SHELL_VARIABLE = "PI_MCP_NPX_SHELL";

/** Against the workspaces of a folder above, which npm would look for. */
export const NO_WORKSPACES = "--workspaces=false";

const MANIFEST = `${JSON.stringify({
  private: true,
  description: "npm runs here for the servers of your own mcp.json, so that no project decides what it runs.",
})}\n`;

/**
 * npm also runs the scripts of packages that it installs with this shell: these stay in their own folder. What is
 * started must not see the variables, or its own scripts would be run by this shell.
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

/** Replaced in one step, since another process may be starting it, and only where it differs. */
async function put(file: string, text: string, mode: number): Promise<void> {
  const found = await readRegularText(file, SMALL_FILE_BYTES);
  if (found.kind === "text" && found.text === text) return;
  const temp = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  await writeFile(temp, text, { mode, flag: "wx" });
  await rename(temp, file);
}

async function prepare(folder: string): Promise<NeutralFolder> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // npm says its folders without links.
  const path = await realpath(folder);
  await put(join(path, "package.json"), MANIFEST, 0o600);
  if (onWindows) return { path, shell: undefined };
  const shell = join(path, "shell.sh");
  await put(shell, SHELL, 0o700);
  return { path, shell };
}

/** Makes the folder. Where that fails, npm runs in the home folder, which is the user's as well. */
export const neutralFolder = (folder: string): Promise<NeutralFolder> =>
  prepare(folder).catch(async () => {
    const home = homedir();
    return { path: await realpath(home).catch(() => home), shell: undefined };
  });
