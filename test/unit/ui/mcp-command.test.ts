/** Owns: the text of `/mcp`. */
import { describe, expect, test } from "vitest";
import type { NoticeLevel, PiContext } from "../../../src/host.ts";
import { ThreadsError } from "../../../src/protocol/errors.ts";
import type { ServerStatus, StatusReport } from "../../../src/protocol/types.ts";
import { createMcpCommand, renderStatus } from "../../../src/ui/mcp-command.ts";

const server = (name: string, rest: Partial<ServerStatus> = {}): ServerStatus => ({
  name,
  state: "connected",
  transport: "stdio",
  source: "/mcp.json",
  toolCount: 2,
  toolsKnown: true,
  ...rest,
});
const report = (rest: Partial<StatusReport>): StatusReport => ({
  servers: [],
  problems: [],
  files: [],
  ...rest,
});

describe("renderStatus", () => {
  test("nothing configured -> says where to add servers", () => {
    expect(renderStatus(report({ files: ["/home/mcp.json", "/p/.pi/mcp.json"] }))).toBe(
      "MCP: 0 of 0 servers connected, 0 tools known\nNo servers are configured. Add them to /home/mcp.json or /p/.pi/mcp.json.",
    );
  });

  test("one server, one tool -> singular", () => {
    expect(renderStatus(report({ servers: [server("fs", { toolCount: 1 })] }))).toBe(
      "MCP: 1 of 1 server connected, 1 tool known\nfs: connected (stdio, 1 tool)",
    );
  });

  test("several servers -> a line each in their order, only connected ones counted", () => {
    const servers = [
      server("z", { transport: "sse" }),
      server("a", { state: "idle", transport: "http", toolCount: 5 }),
      server("n", { state: "connecting", toolsKnown: false, toolCount: 0 }),
    ];
    expect(renderStatus(report({ servers })).split("\n")).toEqual([
      "MCP: 1 of 3 servers connected, 7 tools known",
      "z: connected (sse, 2 tools)",
      "a: idle (http, 5 tools)",
      "n: connecting (stdio, tools unknown)",
    ]);
  });

  test("a failed server -> its error with remedy, in one line", () => {
    const error = { code: "connect_failed" as const, message: "x wrote:\nline 1\nline 2", remedy: "Look." };
    const servers = [server("x", { state: "failed", toolsKnown: false, toolCount: 0, error })];
    expect(renderStatus(report({ servers })).split("\n")).toEqual([
      "MCP: 0 of 1 server connected, 0 tools known",
      "x: failed (stdio, tools unknown): x wrote: | line 1 | line 2 Look.",
    ]);
  });

  test("mistakes in a file -> position, key, what and what to do; also without any server", () => {
    const problems = [
      {
        file: "/m.json",
        line: 3,
        column: 7,
        key: "mcpServers.a.args",
        message: "expected array",
        remedy: "Correct it.",
      },
      { file: "/m.json", message: "cannot be read: EACCES", remedy: "Make it readable." },
    ];
    expect(renderStatus(report({ problems })).split("\n").slice(1)).toEqual([
      "/m.json:3:7: mcpServers.a.args: expected array. Correct it.",
      "/m.json: cannot be read: EACCES. Make it readable.",
    ]);
  });
});

describe("createMcpCommand", () => {
  const run = async (status: () => Promise<StatusReport>): Promise<[string, NoticeLevel | undefined][]> => {
    const notices: [string, NoticeLevel | undefined][] = [];
    const ui = {
      notify: (m: string, level?: NoticeLevel) => notices.push([m, level]),
      setStatus: () => undefined,
    };
    await createMcpCommand(status).handler("", { hasUI: true, ui } as unknown as PiContext);
    return notices;
  };

  test("a status -> one info notice", async () => {
    const [notice, ...others] = await run(async () => report({ files: ["/m.json"] }));
    expect(others).toEqual([]);
    expect(notice).toEqual([renderStatus(report({ files: ["/m.json"] })), "info"]);
  });

  test("a status that fails, at once or later -> one error notice, nothing thrown", async () => {
    const error = new ThreadsError("runtime_stopped", "Stopped.");
    const expected = [["MCP status is not available: Stopped.", "error"]];
    expect(await run(() => Promise.reject(error))).toEqual(expected);
    expect(
      await run(() => {
        throw error;
      }),
    ).toEqual(expected);
  });
});
