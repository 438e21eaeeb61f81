/** Owns: `/mcp`: its words, their completion, what each does and what is said when it cannot. */
import { describe, expect, it, test } from "vitest";
import { ThreadsError } from "../../../src/protocol/errors.ts";
import { completeMcp, createMcpCommand, type McpCommandHost } from "../../../src/ui/mcp-command.ts";
import { renderStatus, renderTools } from "../../../src/ui/status-text.ts";
import { makeCatalog } from "../make-catalog.ts";
import { createRecordingContext, type RecordingContext } from "../recording-context.ts";
import { makeReport, makeStatus } from "../server-status.ts";

const USAGE = "Usage: /mcp [status] | /mcp tools [server] | /mcp reconnect [server]";
const SERVERS = [makeStatus("fs"), makeStatus("git"), makeStatus("github")];
const CATALOG = makeCatalog([{ name: "fs", tools: [{ tool: "read" }] }]);
const REPORT = makeReport({ servers: SERVERS });

interface Ran extends RecordingContext {
  asked: string[];
}

async function run(args: string, host: Partial<McpCommandHost> = {}, hasUI = true): Promise<Ran> {
  const asked: string[] = [];
  const recording = createRecordingContext({ hasUI });
  const command = createMcpCommand({
    status: async () => {
      asked.push("status");
      return REPORT;
    },
    reconnect: async (server) => {
      asked.push(`reconnect ${server}`);
    },
    catalog: () => CATALOG,
    servers: () => SERVERS,
    ...host,
  });
  await command.handler(args, recording.ctx);
  return { ...recording, asked };
}

describe("/mcp", () => {
  it.each(["", "  ", "status", " status  "])("%j -> one info notice with the status", async (args) => {
    const { notices, asked } = await run(args);
    expect(notices).toEqual([[renderStatus(REPORT), "info"]]);
    expect(asked).toEqual(["status"]);
  });

  it.each([
    ["tools", undefined],
    ["tools fs", "fs"],
    [" tools   fs ", "fs"],
    ["tools nope", "nope"],
    ["tools fs git", "fs git"],
  ])("%j -> the tools, without asking the worker", async (args, server) => {
    const { notices, asked } = await run(args);
    expect(notices).toEqual([[renderTools(CATALOG, SERVERS, server), "info"]]);
    expect(asked).toEqual([]);
  });

  it.each([
    ["reconnect", "reconnect undefined"],
    ["reconnect git", "reconnect git"],
    ["reconnect my server", "reconnect my server"],
  ])("%j -> reconnects, then shows the status that it led to", async (args, first) => {
    const { notices, asked } = await run(args);
    expect(asked).toEqual([first, "status"]);
    expect(notices).toEqual([[renderStatus(REPORT), "info"]]);
  });

  it.each(["status fs", "status a b"])("%j, words too many -> the usage, nothing done", async (args) => {
    const { notices, asked } = await run(args);
    expect(notices).toEqual([[USAGE, "warning"]]);
    expect(asked).toEqual([]);
  });

  it.each(["nope", "Status", "constructor", "nope fs", "__proto__"])(
    "%j -> not known, with the usage",
    async (args) => {
      const { notices, asked } = await run(args);
      expect(notices).toEqual([[`/mcp ${args.split(" ")[0]} is not known. ${USAGE}`, "warning"]]);
      expect(asked).toEqual([]);
    },
  );

  const error = new ThreadsError("unknown_server", "No server named x.", { remedy: "/mcp lists them." });
  it.each([
    ["status", { status: () => Promise.reject(error) }],
    [
      "status",
      {
        status: () => {
          throw error;
        },
      },
    ],
    ["reconnect x", { reconnect: () => Promise.reject(error) }],
  ])("%j that fails -> one error notice with the remedy, nothing thrown", async (args, host) => {
    const { notices } = await run(args, host);
    expect(notices).toEqual([["/mcp: No server named x. /mcp lists them.", "error"]]);
  });
});

describe("completeMcp", () => {
  const NAMES = ["fs", "git", "github"];
  it.each([
    ["", ["status", "tools", "reconnect"]],
    ["s", ["status"]],
    ["tools", ["tools"]],
    ["x", undefined],
    ["S", undefined],
    ["tools ", ["tools fs", "tools git", "tools github"]],
    ["tools gi", ["tools git", "tools github"]],
    ["tools  f", ["tools fs"]],
    ["reconnect github", ["reconnect github"]],
    ["tools x", undefined],
    ["status ", undefined],
    ["status f", undefined],
    ["constructor ", undefined],
    ["tools fs ", undefined],
  ])("%j -> %j", (prefix, values) => {
    expect(completeMcp(prefix, NAMES)).toEqual(values?.map((value) => ({ value, label: value })) ?? null);
  });

  test("a server whose name holds a space -> what is completed is understood", async () => {
    const spaced = [makeStatus("my server")];
    const [completion] = completeMcp("tools my", ["my server"]) ?? [];
    const { notices } = await run(completion?.value ?? "", { servers: () => spaced });
    expect(notices).toEqual([[renderTools(CATALOG, spaced, "my server"), "info"]]);
  });

  test("of the command -> the servers that are configured now", () => {
    const command = createMcpCommand({
      status: async () => REPORT,
      reconnect: async () => undefined,
      catalog: () => CATALOG,
      servers: () => SERVERS,
    });
    expect(command.getArgumentCompletions?.("reconnect g")?.map(({ value }) => value)).toEqual([
      "reconnect git",
      "reconnect github",
    ]);
  });
});
