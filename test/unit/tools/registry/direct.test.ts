/** Owns: the values of `MCP_DIRECT_TOOLS`. */
import { describe, expect, it } from "vitest";
import { directRule } from "../../../../src/tools/registry/direct.ts";

const tool = (name: string, server: string, direct: boolean) => ({
  tool: name,
  server: { name: server },
  direct,
});

describe("directRule", () => {
  it.each<[string | undefined, boolean, boolean, boolean]>([
    [undefined, false, true, false],
    ["", false, true, false],
    [" , ", false, true, false],
    ["*", true, true, true],
    ["__none__", false, false, false],
    ["*,__none__", false, false, false],
    ["docs", true, true, false],
    ["docs/read", true, false, false],
    [" docs/read , git ", true, false, true],
    ["doc", false, false, false],
    ["docs/", false, false, false],
    ["DOCS", false, false, false],
  ])("%j -> docs/read: %s, configured docs/write: %s, git/log: %s", (variable, read, write, log) => {
    const rule = directRule(variable);
    expect(rule.isDirect(tool("read", "docs", false))).toBe(read);
    expect(rule.isDirect(tool("write", "docs", true))).toBe(write);
    expect(rule.isDirect(tool("log", "git", false))).toBe(log);
  });

  it.each<[string | undefined, boolean, boolean]>([
    [undefined, true, true],
    [undefined, false, false],
    ["*", false, true],
    ["docs", false, true],
    ["docs/read", false, true],
    ["git", true, false],
    ["__none__", true, false],
  ])("%j, configured %s -> concerns docs: %s", (variable, configured, concerned) => {
    expect(directRule(variable).concerns("docs", configured)).toBe(concerned);
  });
});
