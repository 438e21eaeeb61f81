/** Owns: the line below the editor, and that Pi is told only changes of it. */
import { describe, expect, it, test } from "vitest";
import type { ServerState } from "../../../src/shared/protocol/status.ts";
import { createStatusLine, statusText } from "../../../src/ui/status-line.ts";
import { createRecordingContext } from "../recording-context.ts";
import { makeStatus } from "../server-status.ts";

describe("statusText", () => {
  test("no servers, or only disabled ones -> no line", () => {
    expect(statusText([])).toBeUndefined();
    expect(statusText([makeStatus("a", { state: "disabled" })])).toBeUndefined();
  });

  it.each<[ServerState, string]>([
    ["idle", "MCP 1/2 · 4 tools"],
    ["connecting", "MCP 1/2 · 4 tools"],
    ["connected", "MCP 2/2 · 4 tools"],
    ["needs-auth", "MCP 1/2 · 4 tools"],
    ["failed", "MCP 1/2 · 4 tools"],
    ["closing", "MCP 1/2 · 4 tools"],
    ["disabled", "MCP 1/1 · 2 tools"],
  ])("one connected, one %s -> %j", (state, text) => {
    expect(statusText([makeStatus("a"), makeStatus("b", { state })])).toBe(text);
  });

  test("one tool -> singular", () => {
    expect(statusText([makeStatus("a", { toolCount: 1 })])).toBe("MCP 1/1 · 1 tool");
  });
});

describe("createStatusLine", () => {
  test("the same text again -> told once; another text -> told; no text -> the line is cleared", () => {
    const { ctx, statuses } = createRecordingContext();
    const line = createStatusLine(ctx);
    const servers = [makeStatus("a")];
    line.show([]);
    line.show(servers);
    line.show([makeStatus("a", { pid: 5 })]);
    line.show([makeStatus("a", { state: "idle" })]);
    line.show([]);
    expect(statuses).toEqual([
      ["pi-mcp-threads", "MCP 1/1 · 2 tools"],
      ["pi-mcp-threads", "MCP 0/1 · 2 tools"],
      ["pi-mcp-threads", undefined],
    ]);
  });

  test("no UI -> Pi is told nothing", () => {
    const { ctx, statuses } = createRecordingContext({ hasUI: false });
    createStatusLine(ctx).show([makeStatus("a")]);
    expect(statuses).toEqual([]);
  });
});

test("npm fetches a package -> in place of the tools, also of a server that is only tried", () => {
  const waits = "npm fetches x, 12 s, 3 files";
  const servers = [makeStatus("a"), makeStatus("b", { state: "connecting", waits })];
  expect(statusText(servers)).toBe(`MCP 1/2 · b: ${waits}`);
  expect(statusText([], { server: "new", waits })).toBe(`new: ${waits}`);
  expect(statusText(servers, { server: "new", waits })).toBe(`MCP 1/2 · new: ${waits} and 1 more`);
});
