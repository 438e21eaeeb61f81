/** Owns: which listeners are open for several sign-ins, and when they are closed. */
import { execFile } from "node:child_process";
import { createServer, type Server } from "node:net";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { Listeners, openCallback } from "../../../../../../workers/connection/auth/sign-in/callback.ts";

const TIMES = { pageMs: 5_000, connectionMs: 20_000 };

function made() {
  const listeners = new Listeners(TIMES);
  const end = new AbortController();
  onTestFinished(async () => {
    end.abort();
    await listeners.end();
  });
  return { listeners, end, signal: end.signal };
}

const status = async (host: string, port: number): Promise<number | string> => {
  try {
    return (await fetch(`http://${host}:${port}/none`)).status;
  } catch (error) {
    return String((error as { cause?: { code?: string } }).cause?.code);
  }
};

const hasIpv6 = await openCallback("::1", 0, TIMES).then(
  async (server) => {
    await server.end();
    return true;
  },
  () => false,
);

/** A program of somebody else at a port. */
async function occupy(host: string, port: number): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  onTestFinished(() => void server.close());
  return server;
}

describe("Listeners", () => {
  test("two sign-ins at one port -> one listener, which closes with the second", async () => {
    const { listeners, signal } = made();
    const first = new AbortController();
    const { port } = await listeners.open("127.0.0.1", 0, first.signal);
    const second = new AbortController();
    expect((await listeners.open("127.0.0.1", port, second.signal)).port).toBe(port);
    first.abort();
    expect(await status("127.0.0.1", port)).toBe(421);
    second.abort();
    await expect.poll(() => status("127.0.0.1", port)).toBe("ECONNREFUSED");
    expect((await listeners.open("127.0.0.1", port, signal)).port).toBe(port);
  });

  test("two sign-ins open one port at the same time -> they share it", async () => {
    const { listeners, signal } = made();
    const probe = await openCallback("127.0.0.1", 0, TIMES);
    await probe.end();
    const both = await Promise.all([1, 2].map(() => listeners.open("127.0.0.1", probe.port, signal)));
    expect(both.map((one) => one.port)).toEqual([probe.port, probe.port]);
  });

  test("each sign-in has its own state -> both answers arrive, and one that ended no longer", async () => {
    const { listeners, signal } = made();
    const first = new AbortController();
    const answers: string[] = [];
    const one = await listeners.open("127.0.0.1", 0, first.signal);
    const two = await listeners.open("127.0.0.1", one.port, signal);
    const redirectUri = `http://127.0.0.1:${one.port}/callback`;
    for (const [listening, state] of [
      [one, "s1"],
      [two, "s2"],
    ] as const) {
      listening.wait({
        redirectUri,
        state,
        answer: async (parameters) => answers.push(String(parameters)) > 0,
      });
    }
    const sent = async (state: string): Promise<number> =>
      (await fetch(`${redirectUri}?code=c&state=${state}`)).status;
    expect([await sent("s1"), await sent("s2")]).toEqual([200, 200]);
    first.abort();
    expect([await sent("s1"), await sent("s2")]).toEqual([400, 200]);
    expect(answers).toEqual(["code=c&state=s1", "code=c&state=s2", "code=c&state=s2"]);
  });

  test("a port of somebody else -> EADDRINUSE, and the next attempt after its end succeeds", async () => {
    const { listeners, signal } = made();
    const foreign = await occupy("127.0.0.1", 0);
    const { port } = foreign.address() as { port: number };
    await expect(listeners.open("127.0.0.1", port, signal)).rejects.toMatchObject({ code: "EADDRINUSE" });
    await new Promise((resolve) => foreign.close(resolve));
    expect((await listeners.open("127.0.0.1", port, signal)).port).toBe(port);
  });

  test("the sign-in has ended before the port is open -> nothing stays open", async () => {
    const { listeners } = made();
    const probe = await openCallback("127.0.0.1", 0, TIMES);
    await probe.end();
    const early = new AbortController();
    const opening = listeners.open("127.0.0.1", probe.port, early.signal);
    early.abort(new Error("ended"));
    await expect(opening).rejects.toThrow("ended");
    await expect.poll(() => status("127.0.0.1", probe.port)).toBe("ECONNREFUSED");
  });

  test("the end -> open connections end, too", async () => {
    const { listeners, signal } = made();
    const { port, wait } = await listeners.open("127.0.0.1", 0, signal);
    wait({
      redirectUri: `http://127.0.0.1:${port}/`,
      state: "s",
      answer: () => new Promise(() => undefined),
    });
    const hanging = fetch(`http://127.0.0.1:${port}/?state=s`);
    const failed = expect(hanging).rejects.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    await listeners.end();
    await failed;
  });
});

test("a sign-in waits, and nothing else runs -> the process ends by itself", async () => {
  const file = new URL("../../../../../../workers/connection/auth/sign-in/callback.ts", import.meta.url);
  const program = `
    const { Listeners } = await import(${JSON.stringify(file.href)});
    const listeners = new Listeners({ pageMs: 5_000, connectionMs: 600_000 });
    const { port, wait } = await listeners.open("127.0.0.1", 0, new AbortController().signal);
    wait({ redirectUri: "http://127.0.0.1:" + port + "/", state: "s", answer: () => new Promise(() => {}) });
    const { connect } = await import("node:net");
    await new Promise((resolve) => connect(port, "127.0.0.1", resolve).unref());
    console.log("waits");
  `;
  const ended = promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  expect(await ended).toMatchObject({ stdout: "waits\n" });
});

describe.runIf(hasIpv6)("localhost", () => {
  test("both loopback addresses are listened at, and both close", async () => {
    const { listeners, end, signal } = made();
    const { port } = await listeners.open("localhost", 0, signal);
    expect([await status("127.0.0.1", port), await status("[::1]", port)]).toEqual([421, 421]);
    end.abort();
    await expect.poll(() => status("[::1]", port)).toBe("ECONNREFUSED");
    await expect.poll(() => status("127.0.0.1", port)).toBe("ECONNREFUSED");
  });

  test("the port is busy at one of them -> EADDRINUSE, and the other is closed again", async () => {
    const { listeners, signal } = made();
    const foreign = await occupy("::1", 0);
    const { port } = foreign.address() as { port: number };
    await expect(listeners.open("localhost", port, signal)).rejects.toMatchObject({ code: "EADDRINUSE" });
    // Another test may listen at this port by now: 421 is the answer of ours.
    await expect.poll(() => status("127.0.0.1", port)).not.toBe(421);
  });

  test("[::1] -> only that address", async () => {
    const { listeners, signal } = made();
    const { port } = await listeners.open("[::1]", 0, signal);
    expect([await status("127.0.0.1", port), await status("[::1]", port)]).toEqual(["ECONNREFUSED", 421]);
  });
});
