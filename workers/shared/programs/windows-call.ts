/**
 * How a file is started on Windows: a program directly, any other file, such as an npm `.cmd`, by the command shell
 * with its arguments escaped. Pure.
 */
import escaping from "cross-spawn/lib/util/escape.js";

export interface SpawnCall {
  file: string;
  args: string[];
  /** The arguments are escaped already. */
  verbatim: boolean;
}

const PROGRAM = /\.(?:com|exe)$/i;
/** npm's shims hand their arguments to a second command shell. */
const SHIM = /node_modules[\\/]\.bin[\\/][^\\/]+\.cmd$/i;
/** Files that the system starts by itself or through the command shell. */
const STARTABLE = /\.(?:com|exe|cmd|bat)$/i;

/** `program`, `shell`: whole paths of the program and of the command shell. */
export function windowsCall(program: string, args: readonly string[], shell: string): SpawnCall {
  if (PROGRAM.test(program)) return { file: program, args: [...args], verbatim: false };
  const isShim = SHIM.test(program);
  const words = [escaping.command(program), ...args.map((arg) => escaping.argument(arg, isShim))];
  return { file: shell, args: ["/d", "/s", "/c", `"${words.join(" ")}"`], verbatim: true };
}

/** The program that a script's first line names, with its flags; undefined if the system starts the file itself. */
export function scriptRunner(
  file: string,
  firstLine: string,
): { command: string; flags: string[] } | undefined {
  if (STARTABLE.test(file)) return undefined;
  const [path = "", ...words] = /^#!\s*(.*)$/.exec(firstLine)?.[1]?.trim().split(/\s+/) ?? [];
  const name = path.split("/").at(-1) ?? "";
  if (name === "") return undefined;
  if (name !== "env") return { command: name, flags: words };
  const [command, ...flags] = words.filter((word) => word !== "-S");
  return command === undefined ? undefined : { command, flags };
}
