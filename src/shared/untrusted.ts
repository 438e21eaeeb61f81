/**
 * The project's own files that are not read, because Pi does not trust the folder: which, and what a person is told of them.
 * Pure: the caller passes Node's functions.
 */
import type { SessionFacts } from "./protocol/session.ts";
import { PROJECT_FILES } from "./snapshot/contract.ts";

export const UNTRUSTED = "Pi does not trust this folder, so its servers are not read";

/** How a person decides that, in Pi and in a shell. */
export const TRUST_IT = "/trust decides that, from the next start of Pi on.";
export const TRUST_IN_SHELL = "Start Pi here and trust the project, or add --trust-project.";

type Facts = Pick<SessionFacts, "cwd" | "projectTrusted"> & { configPath?: string | undefined };

interface Node {
  lstat(path: string): Promise<unknown>;
  resolve(...parts: string[]): string;
}

/**
 * Those that are there, from the folder on; none of a folder that Pi trusts. One that the user named by --mcp-config is
 * read as the user's own.
 */
export async function unreadFiles(
  { cwd, projectTrusted, configPath }: Facts,
  { lstat, resolve }: Node,
): Promise<string[]> {
  if (projectTrusted) return [];
  const own = configPath === undefined ? undefined : resolve(cwd, configPath);
  const found = await Promise.all(
    PROJECT_FILES.map((name) => {
      const file = resolve(cwd, name);
      return lstat(file).then(
        () => (file === own ? [] : [name]),
        () => [],
      );
    }),
  );
  return found.flat();
}

/** In one line; undefined: every file counts. `how`: a person decides that. */
export const unreadLine = (unread: readonly string[], how: string): string | undefined =>
  unread.length > 0 ? `${unread.join(" and ")}: ${UNTRUSTED}. ${how}` : undefined;
