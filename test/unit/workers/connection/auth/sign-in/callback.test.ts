/** Owns: which listeners are open for several sign-ins, and when they are closed. */

import { execFile } from "node:child_process";
import { request } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type CallbackServer,
  decide,
  escapeHtml,
  Listeners,
  openCallback,
  pageOf,
  type Waiter,
} from "../../../../../../workers/connection/auth/sign-in/callback.ts";

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

function waiter(redirectUri: string, state: string, outcome: Promise<boolean> = Promise.resolve(true)) {
  const answers: string[] = [];
  const answer = (parameters: URLSearchParams): Promise<boolean> => {
    answers.push(String(parameters));
    return outcome;
  };
  return { redirectUri, state, answer, answers } satisfies Waiter & { answers: string[] };
}

describe("decide", () => {
  const one = waiter("http://127.0.0.1:4711/callback/one", "state-1");
  const two = waiter("http://127.0.0.1:4711/callback/two", "state-2");
  const local = waiter("http://localhost:4711/callback", "state-3");
  const HOST = "127.0.0.1:4711";
  const GOOD = "/callback/one?code=c&state=state-1";
  const decided = (method: string, url: string, host: string | undefined) => {
    const decision = decide({ method, url, host }, [one, two, local]);
    return "status" in decision ? decision.status : decision.waiter.state;
  };

  test.each<[string, string, string | undefined, number | string]>([
    ["GET", GOOD, HOST, "state-1"],
    ["GET", "/callback/two?code=c&state=state-2", HOST, "state-2"],
    ["GET", "/callback?state=state-3&error=access_denied", "LocalHost:4711", "state-3"],
    ["GET", GOOD, "evil.test:4711", 421],
    ["GET", GOOD, "127.0.0.1", 421],
    ["GET", GOOD, "127.0.0.1:80", 421],
    ["GET", GOOD, undefined, 421],
    ["GET", GOOD, "localhost:4711", 404],
    ["POST", GOOD, HOST, 405],
    ["HEAD", GOOD, HOST, 405],
    ["OPTIONS", GOOD, HOST, 405],
    ["GET", "/", HOST, 404],
    ["GET", "/callback?code=c&state=state-3", HOST, 404],
    ["GET", "/callback/one/?code=c&state=state-1", HOST, 404],
    ["GET", "/callback/../callback/one?code=c&state=state-1", HOST, 404],
    ["GET", "http://127.0.0.1:4711/callback/one?code=c&state=state-1", HOST, 404],
    ["GET", "/favicon.ico", HOST, 404],
    ["GET", "/callback/one", HOST, 400],
    ["GET", "/callback/one?code=c", HOST, 400],
    ["GET", "/callback/one?code=c&state=", HOST, 400],
    ["GET", "/callback/one?code=c&state=state-10", HOST, 400],
    ["GET", "/callback/one?code=c&state=STATE-1", HOST, 400],
    ["GET", "/callback/one?code=c&state=state-2", HOST, 400],
    ["GET", "/callback/one?code=c&state=state-1&state=state-1", HOST, 400],
  ])("%s %s at %s -> %s", (method, url, host, expected) => {
    expect(decided(method, url, host)).toBe(expected);
  });

  test("nobody waits -> 421", () => {
    expect(decide({ method: "GET", url: GOOD, host: HOST }, [])).toMatchObject({ status: 421 });
  });
});

interface Answered {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** `fetch` would not send another Host. */
const ask = (port: number, path: string, { method = "GET", headers = {} } = {}): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        body += piece;
      });
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    sent.once("error", reject).end();
  });

async function listening(times = TIMES): Promise<CallbackServer> {
  const server = await openCallback("127.0.0.1", 0, times);
  onTestFinished(() => server.end());
  return server;
}

async function waiting(outcome?: Promise<boolean>, times = TIMES) {
  const server = await listening(times);
  const one = waiter(`http://127.0.0.1:${server.port}/callback`, "s", outcome);
  server.waiters.add(one);
  return { server, port: server.port, answers: one.answers, path: "/callback?code=c1&state=s" };
}

describe("the listener", () => {
  test.each([
    [true, "Signed in"],
    [false, "Not signed in"],
  ])("the answer comes and the outcome is %s -> the page says so", async (outcome, title) => {
    const { port, answers, path } = await waiting(Promise.resolve(outcome));
    const { status, body } = await ask(port, path);
    expect([status, answers]).toEqual([200, ["code=c1&state=s"]]);
    expect(body).toContain(`<h1>${title}</h1>`);
  });

  test("the outcome takes longer than a browser should wait -> the page says that Pi tells the end", async () => {
    const { port, path } = await waiting(new Promise(() => undefined), { ...TIMES, pageMs: 1 });
    expect((await ask(port, path)).body).toContain("<h1>Almost done</h1>");
  });

  test.each(["/callback?code=c1&state=s", "/callback?state=wrong", "/else"])(
    "%s -> no answer of it can be kept, framed or scripted",
    async (path) => {
      const { port } = await waiting();
      const { headers, body } = await ask(port, path);
      expect(headers).toMatchObject({
        "cache-control": "no-store",
        "content-security-policy": expect.stringMatching(/^default-src 'none'; style-src 'unsafe-inline'; /),
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        connection: "close",
      });
      expect(headers).not.toHaveProperty("set-cookie");
      expect(headers).not.toHaveProperty("access-control-allow-origin");
      expect(body).not.toMatch(/<script|src=|href=|c1|wrong/);
    },
  );

  test("a wrong state, then the right one -> 400, and the sign-in still waits", async () => {
    const { port, answers, path } = await waiting();
    expect((await ask(port, "/callback?code=c2&state=x")).status).toBe(400);
    expect(answers).toEqual([]);
    expect((await ask(port, path)).status).toBe(200);
  });

  test("a foreign Host -> 421", async () => {
    const { port, answers, path } = await waiting();
    expect((await ask(port, path, { headers: { host: `evil.test:${port}` } })).status).toBe(421);
    expect(answers).toEqual([]);
  });

  test("POST -> 405 with the method that is allowed", async () => {
    const { port, answers, path } = await waiting();
    expect(await ask(port, path, { method: "POST" })).toMatchObject({
      status: 405,
      headers: { allow: "GET" },
    });
    expect(answers).toEqual([]);
  });

  test("headers of more than 16 KB -> refused", async () => {
    const { port, answers } = await waiting();
    expect((await ask(port, `/callback?state=s&code=${"c".repeat(17_000)}`)).status).toBe(431);
    expect(answers).toEqual([]);
  });

  test("a program sends its request too slowly -> the connection ends", async () => {
    const { port } = await waiting(undefined, { ...TIMES, connectionMs: 50 });
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /callback?state=s HTTP/1.1\r\n");
    await new Promise((resolve) => socket.on("error", () => undefined).once("close", resolve));
    expect(socket.destroyed).toBe(true);
  });

  test("more than 20 connections -> the others are refused", async () => {
    const { port } = await waiting();
    const sockets: Socket[] = [];
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    let closed = 0;
    for (let i = 0; i < 21; i++) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined).once("close", () => closed++);
      sockets.push(socket);
      await new Promise((resolve) => socket.once("connect", resolve));
    }
    await expect.poll(() => closed).toBe(1);
  });

  test("two requests over one connection -> only the first has an answer", async () => {
    const { port, answers } = await waiting();
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    const one = `GET /callback?state=s&code=c HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
    socket.write(one + one);
    await new Promise((resolve) => socket.once("close", resolve));
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(answers).toHaveLength(1);
  });

  // Only Linux has the whole of 127.0.0.0/8.
  test.runIf(process.platform === "linux")(
    "only one address is listened at -> the other addresses of this machine are closed",
    async () => {
      const { port } = await waiting();
      const failure = new Promise((resolve) =>
        connect(port, "127.0.0.2").once("error", resolve).once("connect", resolve),
      );
      expect(await failure).toMatchObject({ code: "ECONNREFUSED" });
    },
  );

  test("a busy port -> EADDRINUSE", async () => {
    const { port } = await listening();
    await expect(openCallback("127.0.0.1", port, TIMES)).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  test("it closes while a page is on its way -> the page arrives", async () => {
    const outcome = Promise.withResolvers<boolean>();
    const { server, port, path, answers } = await waiting(outcome.promise);
    const answered = ask(port, path);
    await expect.poll(() => answers).toHaveLength(1);
    server.close();
    outcome.resolve(true);
    expect((await answered).body).toContain("Signed in");
    await server.closed;
  });
});

test("the pages -> each is a whole page without anything from outside", () => {
  for (const kind of ["ok", "failed", "received", "unknown"] as const) {
    expect(pageOf(kind)).toMatch(/^<!doctype html>.*<title>[\w ]+<\/title>.*<\/html>\n$/s);
    expect(pageOf(kind)).not.toMatch(/<script|<link|<img|https?:/);
  }
});

test("escapeHtml -> no text can become a tag or an attribute", () => {
  expect(escapeHtml(`<a b="c" d='e'>&`)).toBe("&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
});
