/** Owns: what happens to a server between the start of its process and the first reader of its output: nothing is lost. */
import { expect, onTestFinished, test } from "vitest";
import { StdioTransport } from "../../../../../../workers/connection/transports/stdio/transport.ts";

const MESSAGE_BYTES = 1024 * 1024;

/** `code`: runs as the server. */
function transportOf(code: string, program = process.execPath) {
  const events: string[] = [];
  const spoken = Promise.withResolvers<void>();
  const exited = Promise.withResolvers<void>();
  const transport = new StdioTransport({
    server: "early",
    command: program,
    launch: { program, args: ["-e", code], env: {}, cwd: import.meta.dirname },
    maxMessageBytes: MESSAGE_BYTES,
    onSpawn: () => void events.push("spawned"),
    onExit: () => {
      events.push("exited");
      exited.resolve();
    },
    onNote: (note) => void events.push(note),
    redact: (text) => text,
    onStderr: () => spoken.resolve(),
  });
  onTestFinished(() => transport.closeWithin({ termMs: 10, killMs: 20 }));
  return { transport, events, spoken: spoken.promise, exited: exited.promise };
}

const EARLY = 'process.stdout.write(\'{"jsonrpc":"2.0","method":"early"}\\n\');';

test("a message that was sent before anybody reads -> read by `start`, and one process only", async () => {
  const { transport, events, spoken } = transportOf(
    `${EARLY} console.error("sent"); setInterval(() => {}, 1e6)`,
  );
  await transport.spawn();
  await spoken;
  const heard = new Promise((resolve) => {
    transport.onmessage = resolve;
  });
  await transport.start();
  expect(await heard).toEqual({ jsonrpc: "2.0", method: "early" });
  expect(events).toEqual(["spawned"]);
});

test("the process has ended before anybody reads -> `start` works, and what is sent fails with the exit", async () => {
  const { transport, events, exited } = transportOf("process.exit(3)");
  await transport.spawn();
  await exited;
  await transport.start();
  await expect(transport.send({ jsonrpc: "2.0", method: "late" })).rejects.toThrow("exited with code 3");
  expect(events).toEqual(["spawned", "exited"]);
});

test("a program that cannot be started -> both fail with the reason, and there is nothing to close", async () => {
  const { transport, events } = transportOf("", "/nowhere/at/all");
  await expect(transport.spawn()).rejects.toMatchObject({ code: "spawn_failed" });
  await expect(transport.start()).rejects.toMatchObject({ code: "spawn_failed" });
  await transport.close();
  expect(events).toEqual([]);
});

test("messages of one turn -> the server reads them in their order", async () => {
  const code = 'process.stdin.on("data", (data) => process.stdout.write(data))';
  const { transport } = transportOf(code);
  const heard: unknown[] = [];
  const { promise: all, resolve } = Promise.withResolvers<void>();
  transport.onmessage = (message) => {
    if (heard.push((message as { params: unknown }).params) === 50) resolve();
  };
  await transport.start();
  const sent = Array.from({ length: 50 }, (_, id) => ({ id }));
  await Promise.all(
    sent.map((params) => transport.send({ jsonrpc: "2.0" as const, method: "echo", params })),
  );
  await all;
  expect(heard).toEqual(sent);
});
