/** Owns: how a session's use of a shared server ends while it or the hub does not read, with a real socket and a hub that is played. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { SharedServerProcess } from "../../../../../../workers/connection/transports/stdio/shared.ts";
import { controlFrame, type FromHub, headOf } from "../../../../../../workers/shared/hub/wire.ts";
import { makeTempFolder, removeFolder } from "../../../../../support/temp-folder.ts";

const PIECE = Buffer.alloc(1024 * 1024, "x");

interface Played {
  used: SharedServerProcess;
  socket: Socket;
  /** The hub's end of the connection. */
  hub: Socket;
}

/** A session that has asked the hub for a server, and has no answer yet. */
async function asked(): Promise<Played> {
  const folder = await makeTempFolder("pmt-shared");
  const server = createServer();
  onTestFinished(async () => {
    server.close();
    await removeFolder(folder);
  });
  const path = join(folder, "s");
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const socket = connect(path);
  const [hub] = (await once(server, "connection")) as [Socket];
  hub.on("error", () => undefined).resume();
  onTestFinished(() => void [socket, hub].map((end) => end.destroy()));
  const used = new SharedServerProcess(
    Promise.resolve(socket),
    {
      launch: { program: "s", args: [], env: {}, cwd: "/" },
      ...{ offer: "", label: "s", idleMs: 1, maxMessageBytes: 1, isWanted: false, pid: 1 },
    },
    () => undefined,
  );
  return { used, socket, hub };
}

const ATTACHED = controlFrame({ is: "attached", pid: 1, sessions: 1, since: 1 });

/** A session that reads nothing, and has got so much that it takes no more. */
async function unread(last?: FromHub): Promise<Played> {
  const { used, socket, hub } = await asked();
  hub.write(ATTACHED);
  await once(used, "spawn");
  hub.write(headOf("data", PIECE.length));
  hub.write(PIECE);
  if (last) hub.end(controlFrame(last));
  else for (let more = 0; more < 8; more++) hub.write(Buffer.concat([headOf("data", PIECE.length), PIECE]));
  await expect.poll(() => socket.isPaused()).toBe(true);
  return { used, socket, hub };
}

describe("a hub that falls silent", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  test("before it answers -> the start fails with the reason, and the connection is closed", async () => {
    const { used, socket } = await asked();
    const closed = once(socket, "close");
    const failed = once(used, "spawn").catch((error: unknown) => error);
    vi.advanceTimersByTime(LIMITS.hubStartMs);
    expect(await failed).toMatchObject({
      code: "connect_failed",
      message: "s could not be connected: the hub of shared servers does not answer.",
    });
    await closed;
  });

  test("after its answer -> the use goes on: each request has a time of its own", async () => {
    const { used, hub } = await asked();
    const events: string[] = [];
    for (const event of ["error", "exit"]) used.on(event, () => events.push(event));
    hub.write(ATTACHED);
    await once(used, "spawn");
    vi.advanceTimersByTime(LIMITS.hubStartMs);
    expect([vi.getTimerCount(), events]).toEqual([0, []]);
  });
});

test("the session leaves while it does not read -> the connection is closed on both sides", async () => {
  const { used, socket, hub } = await unread();
  const closed = Promise.all([once(socket, "close"), once(hub, "close")]);
  used.leave("keep");
  await closed;
  expect(used.stdout.readableLength).toBeLessThan(2 * PIECE.length);
});

test("the server ends while the session does not read, which reads then -> all of its output, and the connection is closed", async () => {
  const { used, socket } = await unread({ is: "exit", code: 0, signal: null });
  const closed = once(socket, "close");
  let bytes = 0;
  for await (const piece of used.stdout) bytes += (piece as Buffer).length;
  used.stderr.resume();
  expect(bytes).toBe(PIECE.length);
  await closed;
});
