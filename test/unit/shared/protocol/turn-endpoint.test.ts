/** Owns: comlink over an endpoint that sends what is said in one turn as one message. Real ports of a `MessageChannel`. */
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { expose, transfer, wrap } from "comlink";
import { expect, onTestFinished, test } from "vitest";
import { createTurnEndpoint, type Port } from "../../../../src/shared/protocol/port.ts";

interface Api {
  add(a: number, b: number): Promise<number>;
  length(bytes: Uint8Array): Promise<number>;
  bytes(length: number): Promise<Uint8Array>;
  echo(value: unknown): Promise<unknown>;
  notCloned(): Promise<unknown>;
}

/** The port, and how many messages it has sent. */
function counted(port: MessagePort) {
  const count = { sent: 0 };
  const counting: Port = {
    postMessage: (messages, transferred) => {
      port.postMessage(messages, transferred as ArrayBuffer[]);
      count.sent++;
    },
    on: (event, listener) => port.on(event, listener),
  };
  return { count, endpoint: createTurnEndpoint(counting) };
}

function connect() {
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const [near, far] = [counted(port1), counted(port2)];
  expose(
    {
      add: (a: number, b: number) => a + b,
      length: (bytes: Uint8Array) => bytes.length,
      bytes: (length: number) => {
        const bytes = new Uint8Array(length);
        return transfer(bytes, [bytes.buffer]);
      },
      echo: (value: unknown) => value,
      notCloned: () => () => undefined,
    },
    far.endpoint,
  );
  return { api: wrap<Api>(near.endpoint), near: near.count, far: far.count };
}

test("requests of one turn -> one message there, one back, each with its answer", async () => {
  const { api, near, far } = connect();
  const sums = await Promise.all(Array.from({ length: 50 }, (_, i) => api.add(i, 1)));
  expect(sums).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
  expect([near.sent, far.sent]).toEqual([1, 1]);
});

test("answers that are ready one after the other in one turn of their side -> one message", async () => {
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const count = { sent: 0 };
  const counting: Port = {
    postMessage: (messages) => {
      port2.postMessage(messages);
      count.sent++;
    },
    on: (event, listener) => port2.on(event, listener),
  };
  const steps = async (n: number): Promise<number> => {
    for (let step = 0; step < n; step++) await Promise.resolve();
    return n;
  };
  expose({ steps }, createTurnEndpoint(counting, undefined, setImmediate));
  const api = wrap<{ steps: typeof steps }>(createTurnEndpoint(port1));
  expect(await Promise.all([1, 20, 300].map((n) => api.steps(n)))).toEqual([1, 20, 300]);
  expect(count.sent).toBe(1);
});

test("requests one after the other -> a message each", async () => {
  const { api, near } = connect();
  expect(await api.add(1, 1)).toBe(2);
  expect(await api.add(2, 1)).toBe(3);
  expect(near.sent).toBe(2);
});

test("transferred buffers of several requests -> each arrives, and is gone here", async () => {
  const { api } = connect();
  const [one, two] = [new Uint8Array(10), new Uint8Array(20)];
  const send = (bytes: Uint8Array<ArrayBuffer>) => api.length(transfer(bytes, [bytes.buffer]));
  expect(await Promise.all([send(one), send(two), api.bytes(30).then(({ length }) => length)])).toEqual([
    10, 20, 30,
  ]);
  expect([one.byteLength, two.byteLength]).toEqual([0, 0]);
});

test("an argument that cannot be cloned -> its request fails, the others of the turn are answered", async () => {
  const { api } = connect();
  const settled = await Promise.allSettled([api.add(1, 2), api.echo({ f: () => undefined }), api.add(3, 4)]);
  expect(settled).toEqual([
    { status: "fulfilled", value: 3 },
    { status: "rejected", reason: expect.objectContaining({ message: expect.stringContaining("cloned") }) },
    { status: "fulfilled", value: 7 },
  ]);
});

test("an answer that cannot be cloned -> its request fails, the others of the turn are answered", async () => {
  const { api } = connect();
  const settled = await Promise.allSettled([api.add(1, 2), api.notCloned(), api.add(3, 4)]);
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await api.add(5, 6)).toBe(11);
});

test("events -> each at once as a message of its own, between the answers before and after it", async () => {
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const heard: string[] = [];
  const near = createTurnEndpoint(port1, (event) =>
    heard.push(event.type === "progress" ? event.message : ""),
  );
  const far = createTurnEndpoint(port2);
  const say = (message: string) => far.tell({ type: "progress", callId: "1", message });
  expose(
    {
      one: () => {
        say("before one");
        // The answer waits for the end of the turn, and goes before this event.
        queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => say("after one"))));
      },
    },
    far,
  );
  const api = wrap<{ one(): Promise<void> }>(near);
  await api.one().then(() => heard.push("one"));
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(heard).toEqual(["before one", "one", "after one"]);
});

test("a buffer of an event -> transferred", async () => {
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const { promise, resolve } = Promise.withResolvers<unknown>();
  createTurnEndpoint(port1, resolve);
  const snapshot = new Uint8Array(8);
  createTurnEndpoint(port2).tell({ type: "catalog", snapshot }, [snapshot.buffer]);
  expect(snapshot.byteLength).toBe(0);
  expect(await promise).toEqual({ type: "catalog", snapshot: new Uint8Array(8) });
});
