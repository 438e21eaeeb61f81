/**
 * Owns: the rule that nothing of this package writes through a link of a clone, for every request that can write a file of
 * the project: what the link leads to stays as it is, and the error names it.
 */
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { never, type OpenedSession, openWith } from "./support.ts";

const THEIRS = '{"mcpServers": {"theirs": {"command": "x"}, "mine": {"enabled": true}}}';

/** A session whose project has `.pi/mcp.json` as this link; `below`: from the folder that holds agent folder and project. */
async function withLink(kind: "file" | "folder" | "inside") {
  const at = await openWith({ mine: { lifecycle: "eager" } });
  const { file } = await at.session.requests.readConfig({ project: false }, never());
  const agentDir = dirname(file);
  const cwd = join(agentDir, "..", "project");
  if (kind === "folder") {
    await symlink(agentDir, join(cwd, ".pi"));
    return { at, target: file };
  }
  const target = join(kind === "inside" ? cwd : join(cwd, ".."), "theirs.json");
  await writeFile(target, THEIRS);
  await mkdir(join(cwd, ".pi"));
  await symlink(target, join(cwd, ".pi", "mcp.json"));
  return { at, target };
}

const entry = { command: "y" };
const WRITERS: Record<string, (requests: OpenedSession["session"]["requests"]) => Promise<unknown>> = {
  add: ({ addServer }) => addServer({ name: "new", entry, project: true }, never()),
  enable: ({ setEnabled }) => setEnabled({ server: "mine", enabled: true, project: true }, never()),
  disable: ({ setEnabled }) => setEnabled({ server: "mine", enabled: false, project: true }, never()),
  edit: ({ readConfig }) => readConfig({ project: true }, never()),
  "edit, saved": ({ writeConfig }) => writeConfig({ project: true, before: THEIRS, text: "{}" }, never()),
  "a key in the panel": ({ setServer }) =>
    setServer({ server: "mine", project: true, key: "lifecycle", value: "lazy" }, never()),
  "a tool in the panel": ({ setExposure }) =>
    setExposure({ server: "mine", project: true, tools: ["t"], to: "hidden" }, never()),
};

describe("a project's file is a link", () => {
  test.each(Object.keys(WRITERS).flatMap((name) => [[name, "file"] as const, [name, "folder"] as const]))(
    "%s, and the link of the %s leads out of the project -> refused with the real path, nothing is written, nothing is allowed",
    async (name, kind) => {
      const { at, target } = await withLink(kind);
      const before = await readFile(target, "utf8");
      await expect(WRITERS[name]?.(at.session.requests)).rejects.toMatchObject({
        code: "bad_config",
        message: expect.stringContaining(`leads to ${target}, which is not a file of this project`),
      });
      expect(await readFile(target, "utf8")).toBe(before);
      const agentDir = kind === "folder" ? dirname(target) : join(dirname(target), "agent");
      // The open question about the project's server may be noted by now; a yes never is.
      const trust = await readFile(join(agentDir, "mcp-trust.json"), "utf8").catch((error) => {
        if (error.code !== "ENOENT") throw error;
        return "";
      });
      expect(trust).not.toContain("allowed");
    },
  );

  test("remove of a server that only that file has -> refused, too", async () => {
    const { at, target } = await withLink("file");
    await at.event("planned");
    await expect
      .poll(() => at.session.requests.removeServer({ server: "theirs" }, never()).catch((e) => e.message))
      .toContain(`leads to ${target}`);
    expect(await readFile(target, "utf8")).toBe(THEIRS);
  });

  test("the link leads to another file of the project -> written, and the real path is told", async () => {
    const { at, target } = await withLink("inside");
    const { setEnabled } = at.session.requests;
    expect(await setEnabled({ server: "mine", enabled: false, project: true }, never())).toMatchObject({
      file: target,
    });
    expect(JSON.parse(await readFile(target, "utf8")).mcpServers.mine).toEqual({ enabled: false });
  });
});
