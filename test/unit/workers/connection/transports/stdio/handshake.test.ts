/**
 * Owns: a server that is remembered as one of the new era and answers late, and one that refuses the first handshake. Real
 * sockets: no program has to start.
 */
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ConnectOptions } from "../../../../../../workers/connection/mcp/connection.ts";
import { MODERN_VERSION } from "../../../../../../workers/connection/mcp/wire/wire.ts";
import { connect } from "../../../../../../workers/connection/transports/transports.ts";
import { connectOptions, type Message } from "../../../../../support/http-server.ts";
import { tempFolder } from "../../../../temp-folder.ts";

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";

/** The answer of a server that speaks 2026-07-28 alone. */
function answerTo({ id, params }: Message): object {
  const meta = params?._meta as Record<string, unknown> | undefined;
  return meta?.[VERSION_KEY] === MODERN_VERSION
    ? {
        id,
        result: {
          resultType: "complete",
          supportedVersions: [MODERN_VERSION],
          capabilities: {},
          instructions: `answers ${id}`,
        },
      }
    : {
        id,
        error: { code: -32022, message: "Unsupported version", data: { supported: [MODERN_VERSION] } },
      };
}

/** A server that answers nothing before it is ready, and then every request, the oldest first. */
async function lateServer(onMessage: (method: string | undefined, ready: () => void) => void) {
  const path = join(await tempFolder(), "s");
  const asked: (string | undefined)[] = [];
  const ready = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    onTestFinished(() => void socket.destroy());
    createInterface({ input: socket }).on("line", (line) => {
      const message: Message = JSON.parse(line);
      asked.push(message.method);
      onMessage(message.method, ready.resolve);
      if (message.id === undefined) return;
      void ready.promise.then(() =>
        socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...answerTo(message) })}\n`),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return { path, asked };
}

const remembered: ConnectOptions["remembered"] = {
  protocol: { version: MODERN_VERSION, offers: [], freshUntil: 0 },
  tools: [],
  instructions: undefined,
  isTrusted: true,
};

async function connected(entry: Record<string, unknown>, discoverMs = 20) {
  const connection = await connect(connectOptions(entry, { remembered, discoverMs }));
  onTestFinished(() => connection.close({ termMs: 1, killMs: 1 }));
  return connection;
}

describe.skipIf(process.platform === "win32")("a remembered server of the new era that answers late", () => {
  test("auto: its late answer is none to the handshake, and its refusal of that leads back to the new era", async () => {
    const { path, asked } = await lateServer((method, ready) => {
      if (method === "initialize") ready();
    });
    const { protocol, instructions } = await connected({ socket: path });
    expect(protocol).toEqual({ era: "modern", version: MODERN_VERSION });
    expect(instructions).toBe("answers 2");
    expect(asked).toEqual(["server/discover", "notifications/cancelled", "initialize", "server/discover"]);
  });

  test("pinned: it has the whole time of a start", async () => {
    const { path, asked } = await lateServer((_method, ready) => void sleep(200).then(ready));
    const { protocol } = await connected({ socket: path, protocol: MODERN_VERSION });
    expect(protocol).toEqual({ era: "modern", version: MODERN_VERSION });
    expect(asked).toEqual(["server/discover"]);
  });

  test("auto, a start that may take less: it is over in that time", async () => {
    const { path } = await lateServer(() => undefined);
    await expect(connected({ socket: path, startupTimeoutMs: 20 }, 3_600_000)).rejects.toMatchObject({
      code: "connect_timeout",
    });
  });
});

interface Initialize {
  protocolVersion: string;
  capabilities: Record<string, unknown>;
}

/** A server that takes the handshakes that `refusalOf` does not refuse. Each connection is what a process is of a program. */
async function strictServer(
  refusalOf: (params: Initialize) => { message: string; data?: unknown } | undefined,
  { endsRefused = false, isSilentThen = false } = {},
) {
  const path = join(await tempFolder(), "s");
  const asked: [connection: number, version: string, capabilities: string[]][] = [];
  let connections = 0;
  const server = createServer((socket) => {
    const connection = ++connections;
    let isOver = false;
    onTestFinished(() => void socket.destroy());
    createInterface({ input: socket }).on("line", (line) => {
      const { id, method, params }: Message = JSON.parse(line);
      if (isOver || method !== "initialize") return;
      const { protocolVersion, capabilities } = params as unknown as Initialize;
      asked.push([connection, protocolVersion, Object.keys(capabilities).sort()]);
      if (isSilentThen && asked.length > 1) return;
      const refused = refusalOf({ protocolVersion, capabilities });
      const result = { protocolVersion, capabilities: {}, serverInfo: { name: "s", version: "1" } };
      const answer = refused ? { error: { code: -32603, ...refused } } : { result };
      socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
      isOver = refused !== undefined && endsRefused;
      if (isOver) socket.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return { path, asked };
}

async function offering(entry: Record<string, unknown>, more: Partial<ConnectOptions> = {}) {
  const options = connectOptions(entry, { roots: [], ...more });
  const connection = await connect(options);
  onTestFinished(() => connection.close({ termMs: 1, killMs: 1 }));
  return { connection, notes: options.notes };
}

const strict = ({ capabilities }: Initialize) =>
  Object.keys(capabilities).length > 0 ? { message: 'Unrecognized field "form"' } : undefined;
const only =
  (version: string) =>
  ({ protocolVersion }: Initialize) =>
    protocolVersion === version ? undefined : { message: "Unsupported", data: { expected: version } };
const OFFERED = ["extensions", "roots"];

describe.skipIf(process.platform === "win32")("a server that refuses the handshake", () => {
  test.each(["auto", "legacy"])(
    "%s, for its capabilities -> once more without, in the same process",
    async (protocol) => {
      const { path, asked } = await strictServer(strict);
      const { connection, notes } = await offering({ socket: path, roots: ["/"], protocol });
      expect(connection.protocol).toEqual({ era: "legacy", version: "2025-11-25" });
      expect(asked).toEqual([
        [1, "2025-11-25", OFFERED],
        [1, "2025-11-25", []],
      ]);
      expect(notes).toEqual(["refuses the handshake, trying once more without this client's capabilities"]);
    },
  );

  test("for its version -> once more with the one that it names", async () => {
    const { path, asked } = await strictServer(only("2025-06-18"));
    const { connection } = await offering({ socket: path, roots: ["/"] });
    expect(connection.protocol).toEqual({ era: "legacy", version: "2025-06-18" });
    expect(asked).toEqual([
      [1, "2025-11-25", OFFERED],
      [1, "2025-06-18", OFFERED],
    ]);
  });

  test("for its version, and ends -> the version that it names is worth another process", async () => {
    const { path, asked } = await strictServer(only("2025-06-18"), { endsRefused: true });
    await offering({ socket: path });
    expect(asked.map(([connection]) => connection)).toEqual([1, 2]);
  });

  test("for another reason, and ends -> no process is started for a guess", async () => {
    const { path, asked } = await strictServer(() => ({ message: "API_KEY is not set" }), {
      endsRefused: true,
    });
    await expect(offering({ socket: path })).rejects.toThrow("API_KEY is not set");
    expect(asked).toHaveLength(1);
  });

  test("for another reason, and is silent then -> that reason, long before the limit of a start", async () => {
    const { path, asked } = await strictServer(() => ({ message: "API_KEY is not set" }), {
      isSilentThen: true,
    });
    const entry = { socket: path, startupTimeoutMs: 3_600_000 };
    await expect(offering(entry, { discoverMs: 50 })).rejects.toThrow("API_KEY is not set");
    expect(asked).toHaveLength(2);
  });

  test("for another reason, again -> the error is that of the first handshake", async () => {
    let refusals = 0;
    const { path, asked } = await strictServer(() => ({ message: `no ${++refusals}` }));
    await expect(offering({ socket: path })).rejects.toThrow("no 1");
    expect(asked).toHaveLength(2);
  });
});
