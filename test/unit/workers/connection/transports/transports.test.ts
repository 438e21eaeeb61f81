/** Owns: what every transport keeps of the contract of a connection, against real servers. A transport is a row. */
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import type { TransportKind } from "../../../../../src/shared/protocol/session.ts";
import { connect } from "../../../../../workers/connection/transports/transports.ts";
import { answerWell, connectOptions, resultOf, serve, startEvents } from "../../../../support/http-server.ts";
import { tempFolder } from "../../../temp-folder.ts";

interface Row {
  /** The server's entry in mcp.json. */
  entry: () => Promise<Record<string, unknown>>;
  /** The same for a server that does not answer as one. */
  broken: () => Promise<Record<string, unknown>>;
}

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../../fixtures/servers/${name}`, import.meta.url));
const node = (...args: string[]): Record<string, unknown> => ({ command: process.execPath, args });

/** The legacy transport: one stream of events, and an address for messages. */
async function sseServer(): Promise<string> {
  let stream: ReturnType<typeof startEvents> | undefined;
  const { url } = await serve(({ http, message }, response) => {
    if (http === "GET") {
      stream = startEvents(response);
      stream.write("event: endpoint\ndata: /messages\n\n");
      return;
    }
    response.writeHead(202).end();
    if (message.id !== undefined) stream?.write(`event: message\ndata: ${resultOf(message)}\n\n`);
  });
  return url;
}

const refusing = async (): Promise<string> =>
  (await serve((_asked, response) => response.writeHead(400).end("not here"))).url;

/** A socket at which each connection gets a process of the fixture; `args` in place of it. */
async function socketServer(args = [fixture("echoes.mjs")]): Promise<string> {
  const folder = await tempFolder();
  const path = join(folder, "mcp.sock");
  const server = createServer((socket) => {
    const env = { ...process.env, NAME: "echo", RECORD: join(folder, "record") };
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "ignore"], env });
    child.stdin.on("error", () => undefined);
    socket.on("error", () => undefined).on("close", () => child.kill());
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
    child.on("exit", () => socket.end());
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return path;
}

const TRANSPORTS: Record<TransportKind, Row> = {
  socket: {
    entry: async () => ({ socket: await socketServer() }),
    broken: async () => ({ socket: await socketServer(["-e", "process.exit(3)"]) }),
  },
  stdio: {
    entry: async () => ({
      ...node(fixture("echoes.mjs")),
      env: { NAME: "echo", RECORD: join(await tempFolder(), "record") },
    }),
    broken: async () => node("-e", "process.exit(3)"),
  },
  http: {
    entry: async () => ({ url: (await serve(answerWell)).url }),
    broken: async () => ({ url: await refusing() }),
  },
  sse: {
    entry: async () => ({ url: await sseServer(), type: "sse" }),
    broken: async () => ({ url: await refusing(), type: "sse" }),
  },
};

const times = { termMs: 2_000, killMs: 4_000 };

describe.each(Object.entries(TRANSPORTS))("%s", (kind, { entry, broken }) => {
  test("connects, calls and closes; secrets are known before anything is sent; its end is told once", async () => {
    const told: string[] = [];
    const options = connectOptions(await entry(), {
      onSecrets: () => told.push("secrets"),
      onSpawn: () => told.push("spawn"),
      onExit: () => told.push("exit"),
      onClosed: () => told.push("closed"),
      cwd: process.cwd(),
    });
    const connection = await connect(options);
    expect(connection.transport).toBe(kind);
    const [tool] = await connection.listTools(options.signal);
    const result = await connection.callTool({
      tool: tool?.name ?? "",
      args: { call: "hello" },
      timeoutMs: 20_000,
      signal: options.signal,
      onProgress: () => undefined,
    });
    expect(JSON.stringify(result.content)).toContain("hello");
    expect(connection.failure()).toBeUndefined();
    await connection.close(times);
    const process_ = kind === "stdio" ? ["spawn", "exit"] : [];
    expect(told.toSorted()).toEqual(["closed", "secrets", ...process_].toSorted());
    expect(told[0]).toBe("secrets");
    await connection.close(times);
    expect(told.filter((what) => what === "closed")).toHaveLength(1);
  });

  test("a server that does not answer as one -> connect_failed, and nothing is left running", async () => {
    const pids = new Set<number>();
    const options = connectOptions(await broken(), {
      onSpawn: (pid) => pids.add(pid),
      onExit: (pid) => pids.delete(pid),
      cwd: process.cwd(),
    });
    await expect(connect(options)).rejects.toMatchObject({ name: "ThreadsError", code: "connect_failed" });
    expect(pids.size).toBe(0);
  });

  test("given up before it begins -> cancelled", async () => {
    const options = connectOptions(await entry(), { signal: AbortSignal.abort(), cwd: process.cwd() });
    await expect(connect(options)).rejects.toMatchObject({ code: "cancelled" });
  });
});

test("a variable that is not set -> bad_config before anything is started", async () => {
  const options = connectOptions(
    { command: "node", args: ["$env:PMT_NOT_SET_ANYWHERE"] },
    { onSpawn: () => expect.unreachable("started"), onSecrets: () => expect.unreachable("resolved") },
  );
  await expect(connect(options)).rejects.toMatchObject({ code: "bad_config" });
});
