/** Owns: what the completion proposes for an unfinished line, from the snapshot alone. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { snapshotPath } from "../../../src/catalog/store.ts";
import { candidates as found } from "../../../src/cli/commands/candidates.ts";
import type { Place } from "../../../src/cli/place/place.ts";
import { makeSnapshotBytes } from "../make-catalog.ts";
import { tempFolder } from "../temp-folder.ts";

const candidates = (line: string, place: Place): string[] => found(line, place).map(({ value }) => value);

async function placeWith(trust: Place["trust"] = { trust: "recorded" }): Promise<Place> {
  const agentDir = await tempFolder();
  const key = { cwd: "/work" };
  const path = snapshotPath(agentDir, key);
  await mkdir(dirname(path), { recursive: true });
  const schema = {
    type: "object",
    properties: {
      path: { type: "string", description: "Where.\u001b[31m Not there." },
      head: {},
      mode: { $ref: "#/$defs/mode" },
      flags: { type: "array", items: { type: "boolean" } },
      "$(rm -rf ~)": {},
    },
    required: ["path"],
    $defs: { mode: { enum: ["fast", "slow", "a b"] } },
  };
  const prompts = [
    {
      command: "mcp__files__review",
      prompt: "review",
      arguments: [{ name: "file", required: true as const }],
    },
  ];
  const servers = [
    {
      name: "files",
      prompts,
      tools: [{ tool: "read", schema }, { tool: "write" }, { tool: "=ls" }, { tool: "%1" }],
    },
    { name: "$(touch /tmp/x)", tools: [{ tool: "`id`" }, { tool: "a b" }, { tool: "a;b" }] },
    { name: "--yes", tools: [{ tool: "echo" }] },
    { name: "clone", project: true, tools: [{ tool: "steal" }] },
  ];
  await writeFile(path, makeSnapshotBytes(servers));
  const resources = [{ uri: "file:///a.md", name: "A" }, { uri: "file:///$(id)" }, 1];
  await writeFile(
    join(agentDir, "mcp-cache.json"),
    JSON.stringify({ servers: { files: { resources }, off: {} } }),
  );
  return { agentDir, key, trust };
}

describe("an unfinished line -> what fits", () => {
  test.each([
    ["x sea", ["search"]],
    ["x --js", ["--json"]],
    ["x list --r", ["--refresh"]],
    ["x --cwd ", []],
    ["x --cwd /tmp cal", ["call"]],
    ["x call ", ["files", "clone"]],
    ["x call files ", ["read", "write"]],
    ["x call 'files' r", ["read"]],
    ["x call files read ", ["path=", "head=", "mode=", "flags="]],
    ["x call files read path=a h", ["head="]],
    ["x call files read mode=", ["mode=fast", "mode=slow"]],
    ["x call files read flags=t", ["flags=true"]],
    ["x call files__re", ["files__read"]],
    ["x call files__read mo", ["mode="]],
    ["x prompt files ", ["review"]],
    ["x prompt files review ", ["file="]],
    ["x complete files review f", ["file="]],
    ["x call files read path=", ["path="]],
    ["x tool files__r", ["files__read"]],
    ["x logs f", ["files"]],
    ["x log f", ["files"]],
    ["x find --li", ["--limit"]],
    ["x read files ", ["file:///a.md"]],
    ["x read clone ", []],
    ["x completion z", ["zsh"]],
    ["x hub ", ["stop"]],
    ["x hub stop f", ["files"]],
    ["x import c", ["cursor", "claude-code", "claude-desktop", "codex", "copilot-cli", "claude-plugins"]],
    ["x add --transport ", ["http", "sse", "stdio", "socket"]],
    ["x add --lifecycle k", ["keep-alive"]],
    ["x search --server ", ["files", "clone"]],
    ["x enable ", ["off"]],
    ["x help log", ["login", "logout", "logs"]],
    ["x nonsense ", []],
    ["x list files", []],
  ])("%s", async (line, expected) => {
    expect(candidates(line, await placeWith())).toEqual(expected);
  });

  test("what a candidate is, in one clean line", async () => {
    const place = await placeWith();
    const [first, , mode] = found("x call files read ", place);
    expect(first).toEqual({ value: "path=", about: "string, required: Where." });
    expect(mode).toEqual({ value: "mode=", about: '"fast" | "slow" | "a b"' });
    expect(found("x logs", place)).toEqual([
      { value: "logs", about: "show the log, of all servers or of one" },
    ]);
  });

  test("names that a shell would run or split are never proposed", async () => {
    const place = await placeWith();
    const all = ["x call ", "x tool ", "x call files read ", "x call '$(touch /tmp/x)' "].flatMap((line) =>
      candidates(line, place),
    );
    expect(all.length).toBeGreaterThan(5);
    expect(all.filter((word) => /[^\w.:@%+,/=-]/.test(word))).toEqual([]);
  });

  test("names that would be options, programs or jobs are never proposed", async () => {
    const place = await placeWith();
    expect(candidates("x call ", place)).toEqual(["files", "clone"]);
    expect(candidates("x call --y", place)).toEqual(["--yes"]);
  });

  test("a project without trust -> its servers are not proposed", async () => {
    const place = await placeWith({ trust: "no", reason: "" });
    expect(candidates("x call ", place)).toEqual(["files"]);
    expect(candidates("x tool ", place)).not.toContain("clone__steal");
  });

  test("no snapshot -> commands alone", async () => {
    const place: Place = { agentDir: await tempFolder(), key: { cwd: "/" }, trust: { trust: "nothing" } };
    expect(candidates("x call ", place)).toEqual([]);
    expect(candidates("x ", place)).toContain("call");
  });
});
