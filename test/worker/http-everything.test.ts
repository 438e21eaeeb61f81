/** Owns: the real server-everything over Streamable HTTP and over legacy SSE. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import type { HttpTarget } from "../../workers/connection/config/entry/definition.ts";
import { connectHttp } from "../../workers/connection/transports/http/http.ts";
import { freePort } from "../support/free-port.ts";
import { connectOptions } from "../support/http-server.ts";

const program = join(
  import.meta.dirname,
  "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js",
);
const never = new AbortController().signal;
const soon = { termMs: 1, killMs: 1 };

async function start(mode: "streamableHttp" | "sse", port: number): Promise<ChildProcess> {
  const server = spawn(process.execPath, [program, mode], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => stop(server));
  for await (const line of createInterface(server.stderr)) if (line.includes("port")) break;
  server.stderr.resume();
  return server;
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, "exit");
  server.kill("SIGKILL");
  await ended;
}

function connect(entry: Record<string, unknown>) {
  const options = connectOptions(entry);
  const connecting = connectHttp(options.definition.target as HttpTarget & { kind: "http" }, options);
  return { connecting, notes: options.notes };
}

const echo = {
  tool: "echo",
  args: { message: "hi" },
  timeoutMs: 30_000,
  signal: never,
  onProgress: () => undefined,
};

test.each([
  ["streamableHttp", "/mcp", "http"],
  ["sse", "/sse", "sse"],
] as const)(
  "server-everything over %s -> connects, lists, calls, reports progress; after its restart Streamable HTTP goes on",
  async (mode, path, kind) => {
    const port = await freePort();
    const first = await start(mode, port);
    const { connecting, notes } = connect({ url: `http://127.0.0.1:${port}${path}` });
    const connection = await connecting;
    expect(connection.transport).toBe(kind);
    const tools = (await connection.listTools(never)).map(({ name }) => name);
    expect(tools).toContain("echo");
    // It can only be called as a task, and the server refuses anything else.
    expect(tools).not.toContain("simulate-research-query");
    expect(notes.join("\n")).toContain("run only as tasks of MCP 2025-11-25: simulate-research-query");
    expect((await connection.callTool(echo)).content).toEqual([{ type: "text", text: "Echo: hi" }]);
    const progress: string[] = [];
    await connection.callTool({
      ...echo,
      tool: "trigger-long-running-operation",
      args: { duration: 0.4, steps: 4 },
      onProgress: ({ message }) => progress.push(message),
    });
    expect(progress.length).toBeGreaterThan(1);
    const calls = Array.from({ length: 20 }, (_, i) =>
      connection.callTool({ ...echo, args: { message: String(i) } }).then(({ content }) => content),
    );
    const answers = Array.from({ length: 20 }, (_, i) => [{ type: "text", text: `Echo: ${i}` }]);
    expect(await Promise.all(calls)).toEqual(answers);
    if (mode === "streamableHttp") {
      await stop(first);
      await start(mode, port);
      expect((await connection.listTools(never)).length).toBeGreaterThan(0);
      expect(notes).toContain("had lost the session; a new one is open");
      expect((await connection.callTool(echo)).content).toEqual([{ type: "text", text: "Echo: hi" }]);
    }
    await connection.close(soon);
  },
);
