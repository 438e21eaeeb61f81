/** Owns: the folders that a real server is told, and a server whose entry does not ask for them. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { createPlace, filesystem, start, textOf, until } from "./support.ts";

test("server-filesystem -> keeps its argument; told folders, it works in these", async () => {
  const place = await createPlace();
  const { agentDir, cwd } = place;
  const here = filesystem(agentDir);
  const started = await start(
    { plain: here, session: { ...here, roots: true }, listed: { ...here, roots: [join(agentDir, "..")] } },
    { place },
  );
  const allowed = async (server: string): Promise<string> =>
    textOf(await started.call(server, "list_allowed_directories")).replace(/^.*\n/, "");
  // The server asks after it has answered `initialize`, so its first answer may come before it knows.
  const isTold = (server: string, folder: string) =>
    until(async () => ((await allowed(server)) === folder ? true : undefined));
  await isTold("session", cwd);
  await isTold("listed", join(agentDir, ".."));
  expect(await allowed("plain")).toBe(agentDir);
});
