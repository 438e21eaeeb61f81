/** Owns: an update of the package while the real Pi runs, which keeps main for its next session. */
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { live, open, PATIENCE_MS } from "./rpc-support.ts";
import { copyExtension, home, searchFor } from "./support.ts";

test("a new session after an update -> its tools and /mcp, which was not opened before, are those of the version that Pi has loaded, and a notice says to start Pi again", async () => {
  const at = await home({ mcp: { mcpServers: { s: live(["one"]) } } });
  const folder = await copyExtension(at);
  const pi = await open({ at, extensions: [folder] });
  await pi.statusLine("MCP: 1 server ready · 1 tool");
  await pi.prompt(searchFor("select:s__work"));
  expect(await pi.ask("s__work")).toMatchObject({ argv: ["one"] });

  const built = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".js"));
  expect(built).toContain(join("dist", "screens.js"));
  for (const name of built)
    await writeFile(join(folder, name), 'throw new Error("code of the next version");');
  const since = pi.rpc.events.length;
  await pi.rpc.request({ type: "new_session" }, PATIENCE_MS);

  expect(await pi.notice(/pi-mcp-threads was updated/, since)).toMatch(/start Pi again/);
  expect(await pi.status()).toMatch(/^s: /m);
  await pi.prompt(searchFor("select:s__work"));
  expect(await pi.ask("s__work")).toMatchObject({ argv: ["one"] });
});
