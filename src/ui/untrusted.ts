/** The project's own files that are not read, because Pi does not trust the folder: what a person is told in their place. */
import { access } from "node:fs/promises";
import { join } from "node:path";
import type { PiContext } from "../pi/api.ts";
import { PROJECT_FILES } from "../shared/snapshot/contract.ts";

/** Those that are there, from the folder on; none of a folder that Pi trusts. */
export async function untrustedFiles(
  ctx: Pick<PiContext, "cwd" | "isProjectTrusted">,
): Promise<readonly string[]> {
  if (ctx.isProjectTrusted()) return [];
  const found = await Promise.all(
    PROJECT_FILES.map((file) =>
      access(join(ctx.cwd, file)).then(
        () => [file],
        () => [],
      ),
    ),
  );
  return found.flat();
}

export const UNTRUSTED = "Pi does not trust this folder, so its servers are not read";
export const TRUST_IT = "/trust decides that, from the next start of Pi on.";

/** In one line; undefined: every file counts. */
export async function untrustedLine(ctx: Parameters<typeof untrustedFiles>[0]): Promise<string | undefined> {
  const unread = await untrustedFiles(ctx);
  return unread.length > 0 ? `${unread.join(" and ")}: ${UNTRUSTED}. ${TRUST_IT}` : undefined;
}
