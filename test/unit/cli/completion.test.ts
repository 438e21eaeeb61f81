/** Owns: what the completion proposes for an unfinished line, from the snapshot alone. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { snapshotPath } from "../../../src/catalog/store.ts";
import { candidates } from "../../../src/cli/commands/completion.ts";
import type { Place } from "../../../src/cli/place/place.ts";
import { makeSnapshotBytes } from "../make-catalog.ts";
import { tempFolder } from "../temp-folder.ts";

async function placeWith(trust: Place["trust"] = { trust: "recorded" }): Promise<Place> {
  const agentDir = await tempFolder();
  const key = { cwd: "/work" };
  const path = snapshotPath(agentDir, key);
  await mkdir(dirname(path), { recursive: true });
  const schema = { type: "object", properties: { path: {}, head: {}, "$(rm -rf ~)": {} } };
  const servers = [
    { name: "files", tools: [{ tool: "read", schema }, { tool: "write" }, { tool: "=ls" }, { tool: "%1" }] },
    { name: "$(touch /tmp/x)", tools: [{ tool: "`id`" }, { tool: "a b" }, { tool: "a;b" }] },
    { name: "--yes", tools: [{ tool: "echo" }] },
    { name: "clone", project: true, tools: [{ tool: "steal" }] },
  ];
  await writeFile(path, makeSnapshotBytes(servers));
  return { agentDir, key, trust };
}

describe("an unfinished line -> what fits", () => {
  test.each([
    ["x se", ["search"]],
    ["x --js", ["--json"]],
    ["x list --r", ["--refresh"]],
    ["x --cwd ", []],
    ["x --cwd /tmp cal", ["call"]],
    ["x call ", ["files", "clone"]],
    ["x call files ", ["read", "write"]],
    ["x call 'files' r", ["read"]],
    ["x call files read ", ["path=", "head="]],
    ["x call files read path=a h", ["head="]],
    ["x call files read path=", ["path="]],
    ["x tool files__r", ["files__read"]],
    ["x logs f", ["files"]],
    ["x read files ", []],
    ["x completion z", ["zsh"]],
    ["x hub ", ["stop"]],
    ["x hub stop f", ["files"]],
    ["x help log", ["login", "logout", "logs"]],
    ["x nonsense ", []],
    ["x list files", []],
  ])("%s", async (line, expected) => {
    expect(candidates(line, await placeWith())).toEqual(expected);
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
