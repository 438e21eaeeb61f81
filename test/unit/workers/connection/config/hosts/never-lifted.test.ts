/** Owns: no file of a project lifts what the user's files of another program, or the user's own ones after those, take away. */
import { describe, expect, test } from "vitest";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import { PROJECT_FILE, USER } from "../support.ts";
import { merged, running, shows, verdict } from "./support.ts";

const ours = (source: typeof USER, x: object) =>
  parseConfigText(JSON.stringify({ mcpServers: { x } }), source);
const X = { type: "local", command: ["x"] };

describe("a project's file of the program comes first", () => {
  test.each([{ enabled: true }, { enabled: false }])(
    "%j, and its .mcp.json clears what is excluded -> the program's rules hold",
    (changed) => {
      const { all } = merged(
        "opencode",
        [
          ["user", { mcp: { x: X }, tools: { x_drop: false }, permission: { x_write: "ask" } }],
          ["project", { mcp: { x: changed } }],
        ],
        {},
        [ours(PROJECT_FILE, { excludeTools: [], enabled: true })],
      );
      const { x } = running(all);
      expect(shows(x, "drop", "read")).toEqual(["read"]);
      expect(verdict(x, "write")).toBe("ask");
    },
  );

  test("the user's own mcp.json excludes, and the project's .mcp.json clears it -> it stays excluded", () => {
    const { all } = merged(
      "codex",
      [
        ["user", '[mcp_servers.x]\ncommand = "x"\n'],
        ["project", "[mcp_servers.x]\nenabled = true\n"],
      ],
      {},
      [ours(USER, { excludeTools: ["drop"] }), ours(PROJECT_FILE, { excludeTools: [] })],
    );
    expect(shows(running(all).x, "drop", "read")).toEqual(["read"]);
  });

  test("the user's own mcp.json switches off, and the project's .mcp.json on -> nothing runs unasked", () => {
    const { all } = merged(
      "codex",
      [
        ["user", '[mcp_servers.x]\ncommand = "x"\n'],
        ["project", "[mcp_servers.x]\nenabled = true\n"],
      ],
      {},
      [ours(USER, { enabled: false }), ours(PROJECT_FILE, { enabled: true })],
    );
    expect(running(all)).toEqual({});
  });
});
