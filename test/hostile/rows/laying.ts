/** Owns: the scripts, links, pipes and variables that rows put into a clone. */
import { execFile } from "node:child_process";
import { chmod, mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Place } from "../support/row.ts";

const run = promisify(execFile);

/** Returns a shell script that writes to the canary file and then runs `then`. */
export const script = ({ canaryFile }: Place, then = ""): string =>
  `#!/bin/sh\necho "$0 $*" >> "${canaryFile}"\n${then}\n`;
/** Returns a module for Node's `require` that writes to the canary file. */
export const required = ({ canaryFile }: Place): string =>
  `require("node:fs").appendFileSync(${JSON.stringify(canaryFile)}, "required\\n");\n`;

/** A .env that makes Node run the file `evil.cjs` of the clone. */
export const ENV_ATTACK = "NODE_OPTIONS=--require=./evil.cjs\nGREETING=hello\n";

export async function executable({ home }: Place, path: string, content: string): Promise<void> {
  await chmod(await home.writeFile(path, content), 0o755);
}

export async function link(target: string, { home }: Place, path: string): Promise<void> {
  await mkdir(dirname(join(home.cwd, path)), { recursive: true });
  await symlink(target, join(home.cwd, path));
}

export async function pipe({ home }: Place, path: string): Promise<void> {
  await mkdir(dirname(join(home.cwd, path)), { recursive: true });
  await run("mkfifo", [join(home.cwd, path)]);
}
