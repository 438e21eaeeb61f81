/** Owns: how a session's use of a shared server ends while it does not read, with a real socket and a hub that is played. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SharedServerProcess } from "../../../../../../workers/connection/transports/stdio/shared.ts";
import { controlFrame, type FromHub, headOf } from "../../../../../../workers/shared/hub/wire.ts";

const PIECE = Buffer.alloc(1024 * 1024, "x");

/** A session that reads nothing, and has got so much that it takes no more; and the hub's end of its connection. */
async function unread(last?: FromHub): Promise<{ used: SharedServerProcess; socket: Socket; hub: Socket }> {
  const folder = await mkdtemp(join(tmpdir(), "pmt-shared-"));
  const server = createServer();
  onTestFinished(async () => {
    server.close();
    await rm(folder, { recursive: true, force: true });
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
  hub.write(controlFrame({ is: "attached", pid: 1, sessions: 1, since: 1 }));
  await once(used, "spawn");
  hub.write(headOf("data", PIECE.length));
  hub.write(PIECE);
  if (last) hub.end(controlFrame(last));
  else for (let more = 0; more < 8; more++) hub.write(Buffer.concat([headOf("data", PIECE.length), PIECE]));
  await expect.poll(() => socket.isPaused()).toBe(true);
  return { used, socket, hub };
}

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
