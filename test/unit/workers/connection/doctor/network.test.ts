/** Owns: which addresses the doctor looks at, in which steps, through which proxy, and what it says about each failure. */

import { describe, expect, test } from "vitest";
import { type ErrorData, ThreadsError, type WireError } from "../../../../../src/shared/protocol/errors.ts";
import type { Finding } from "../../../../../src/shared/protocol/person.ts";
import type { ServerStatus } from "../../../../../src/shared/protocol/session.ts";
import type { Examined } from "../../../../../workers/connection/doctor/check.ts";
import type { Machine } from "../../../../../workers/connection/doctor/machine.ts";
import {
  attempt,
  checkNetwork,
  judgeState,
  mayProbe,
} from "../../../../../workers/connection/doctor/states.ts";
import { judgeTimes } from "../../../../../workers/connection/doctor/tools.ts";
import { makeStatus } from "../../../server-status.ts";
import { definition, PROJECT_FILE, PROJECT_PI } from "../config/support.ts";
import { examined, makeInput, makeMachine } from "./support.ts";

const failed = (
  code: WireError["code"],
  message: string,
  data: ErrorData = {},
  more: Partial<ServerStatus> = {},
): ServerStatus =>
  makeStatus("s", { state: "failed", error: { code, message, remedy: "Do it.", data }, ...more });

test.each([
  ["connected", makeStatus("s"), []],
  ["switched off", makeStatus("s", { state: "disabled" }), []],
  ["over SSE", makeStatus("s", { transport: "sse" }), ["note protocol"]],
  ["a command", failed("spawn_failed", "s: no."), ["error command"]],
  ["a host name", failed("connect_failed", "s: no.", { reason: "ENOTFOUND" }), ["error dns"]],
  ["a port", failed("connect_failed", "s: no.", { reason: "ECONNREFUSED" }), ["error port"]],
  ["a certificate", failed("connect_failed", "s: no.", { reason: "certificate" }), ["error tls"]],
  ["a proxy", failed("connect_failed", "s: no.", { reason: "proxy" }), ["error proxy"]],
  ["a web page", failed("connect_failed", "s: no.", { reason: "web-page" }), ["error address"]],
  ["another reason", failed("connect_failed", "s: no.", { reason: "toString" }), ["error connect"]],
  ["no reason", failed("connect_failed", "s: no."), ["error connect"]],
  ["a pinned revision", failed("connect_failed", "s no.", { reason: "era" }), ["error protocol"]],
  ["too slow", failed("connect_timeout", "s: no."), ["error time-out"]],
  ["its own header is refused", failed("needs_auth", "s: no."), ["error sign-in"]],
  ["it ended and is idle", failed("server_died", "s: no.", {}, { state: "idle" }), ["warning ended"]],
  [
    "it is held back",
    failed("server_died", "s: why.", { reason: "held-back" }, { state: "idle" }),
    ["error crash"],
  ],
  [
    "a sign-in is needed",
    makeStatus("s", { state: "needs-auth", signIn: { state: "needed" } }),
    ["warning sign-in"],
  ],
  [
    "a sign-in is refused",
    makeStatus("s", { state: "needs-auth", signIn: { state: "signed-in", renews: false } }),
    ["warning sign-in"],
  ],
  [
    "its sign-in is bound to a key",
    makeStatus("s", { signIn: { state: "signed-in", renews: true, isBound: true } }),
    ["note sign-in"],
  ],
  [
    "such a sign-in is refused",
    makeStatus("s", { state: "needs-auth", signIn: { state: "signed-in", renews: true, isBound: true } }),
    ["warning sign-in"],
  ],
  ["signed in", makeStatus("s", { signIn: { state: "signed-in", renews: true } }), []],
  ["someone signs in now", makeStatus("s", { state: "idle", signIn: { state: "running" } }), []],
])("%s", (_title, status, expected) => {
  expect([judgeState(status) ?? []].flat().map(({ severity, id }) => `${severity} ${id}`)).toEqual(expected);
});

test("an error -> its sentence without the server's name, what it wrote as a detail, its remedy", () => {
  const found = judgeState(failed("connect_failed", "s: It ended. It wrote:\nfirst\nsecond"));
  expect(found).toMatchObject({ title: "It ended. It wrote:", detail: "first\nsecond", remedy: "Do it." });
});

test("what another check tells, and what the title says -> not told again", () => {
  const noFolder = failed("spawn_failed", "s: it has no place.", { server: "s", reason: "no-folder" });
  expect(judgeState(noFolder)?.id).toBe("folder");
  const { error } = failed("needs_auth", "s: it needs a sign-in.", { server: "s", reason: "not-signed-in" });
  const status = makeStatus("s", {
    state: "needs-auth",
    signIn: { state: "needed" },
    ...(error ? { error } : {}),
  });
  expect(judgeState(status)).not.toHaveProperty("detail");
});

test("status 404 -> the remedy names the path", () => {
  const found = judgeState(failed("connect_failed", "s: no.", { status: 404, reason: "refuses-streamable" }));
  expect(found?.remedy).toMatch(/path of the url/);
});

const never = new AbortController().signal;
const coded = (code: string) => async (): Promise<never> => {
  throw Object.assign(new Error(code), { code });
};

const remote = (entry: Record<string, unknown> = {}, status: Partial<ServerStatus> = {}): Examined =>
  examined("s", { url: "https://h.example/mcp?key=secret", ...entry }, { state: "idle", ...status });

/** A machine on which the steps succeed, and what was asked of it. */
function machineWith(over: Partial<Machine> = {}): { machine: Machine; asked: string[] } {
  const asked: string[] = [];
  const machine = makeMachine({
    ...over,
    lookUp: async (host, signal) => {
      asked.push(`look up ${host}`);
      return over.lookUp?.(host, signal) ?? [{ address: "192.0.2.1", family: 4 }];
    },
    openSocket: async ({ host, port }, addresses, signal) => {
      asked.push(`open ${host}:${port}`);
      if (over.openSocket) return over.openSocket({ host, port }, addresses, signal);
      return {
        destroy: () => asked.push("close"),
        secure: async ({ host: name }) => void asked.push(`tls ${name}`),
      };
    },
  });
  return { machine, asked };
}

describe("the steps", () => {
  test.each([
    ["https", {}, {}, ["look up h.example", "open h.example:443", "tls h.example", "close"]],
    ["http", { url: "http://h.example:81/" }, {}, ["look up h.example", "open h.example:81", "close"]],
    ["an IPv6 address", { url: "http://[::1]/" }, {}, ["look up ::1", "open ::1:80", "close"]],
    [
      "a variable",
      { url: `https://\${H}/` },
      { H: "v.example" },
      ["look up v.example", "open v.example:443", "tls v.example", "close"],
    ],
    ["only a command knows the url", { url: "!echo x" }, {}, []],
    [
      "a proxy",
      {},
      { HTTPS_PROXY: "http://u:pw@p.example:3128" },
      ["look up p.example", "open p.example:3128", "close"],
    ],
    [
      "a proxy that is excepted",
      {},
      { HTTPS_PROXY: "http://p.example", NO_PROXY: "h.example" },
      ["look up h.example", "open h.example:443", "tls h.example", "close"],
    ],
  ])("%s", async (_title, entry, env, expected) => {
    const { machine, asked } = machineWith({ env: env as unknown as Record<string, string> });
    await checkNetwork(makeInput([remote(entry)], { machine }), never);
    expect(asked).toEqual(expected);
  });

  test("the named server -> each step with its time", async () => {
    const { machine } = machineWith();
    const input = makeInput([remote()], { machine, named: "s" });
    await checkNetwork(input, never);
    expect(input.stages.map(({ name, ok }) => `${name} ${ok}`)).toEqual([
      "look-up of h.example true",
      "connection to port 443 true",
      "TLS handshake true",
    ]);
  });

  test("the connected server -> looked at only by name", async () => {
    const { machine, asked } = machineWith();
    await checkNetwork(makeInput([remote({}, { state: "connected" })], { machine }), never);
    expect(asked).toEqual([]);
  });
});

describe("the failures", () => {
  const failsToSecure = (code: string): Partial<Machine> => ({
    openSocket: async () => ({ destroy: () => undefined, secure: coded(code) }),
  });

  test.each<[string, Partial<Machine>, string, RegExp]>([
    [
      "no such name",
      { lookUp: coded("ENOTFOUND") },
      "error dns",
      /^https:\/\/h\.example\/ could not be found/,
    ],
    ["no name service", { lookUp: coded("EAI_AGAIN") }, "error dns", /name service did not answer/],
    ["nothing listens", { openSocket: coded("ECONNREFUSED") }, "error port", /refused the connection/],
    ["nobody answers", { openSocket: coded("ETIMEDOUT") }, "error port", /did not answer/],
    ["self-signed", failsToSecure("DEPTH_ZERO_SELF_SIGNED_CERT"), "error tls", /self-signed/],
    ["expired", failsToSecure("CERT_HAS_EXPIRED"), "error tls", /has expired/],
    ["another host", failsToSecure("ERR_TLS_CERT_ALTNAME_INVALID"), "error tls", /another host name/],
    ["no TLS", failsToSecure("ERR_SSL_WRONG_VERSION_NUMBER"), "error tls", /does not speak TLS/],
    ["TLS is refused", failsToSecure("EPROTO"), "error tls", /did not agree to a TLS connection/],
  ])("%s", async (_title, over, expected, title) => {
    const { machine } = machineWith(over);
    const [found] = await checkNetwork(makeInput([remote()], { machine }), never);
    expect(`${found?.severity} ${found?.id}`).toBe(expected);
    expect(found?.title).toMatch(title);
    expect(found?.remedy).toBeTruthy();
    expect(JSON.stringify(found)).not.toContain("secret");
  });

  test("the proxy cannot be reached -> the proxy is named without its password", async () => {
    const { machine } = machineWith({
      env: { HTTPS_PROXY: "http://u:hunter22@p.example:3128" },
      openSocket: coded("ECONNREFUSED"),
    });
    const [found] = await checkNetwork(makeInput([remote()], { machine }), never);
    expect(found).toMatchObject({ id: "proxy", severity: "error" });
    expect(found?.title).toContain("p.example:3128");
    expect(JSON.stringify(found)).not.toContain("hunter22");
  });

  test("the variable of the proxy is wrong, the caFile is missing -> said", async () => {
    const { machine } = machineWith({ env: { HTTPS_PROXY: "ftp://p" } });
    expect(await checkNetwork(makeInput([remote()], { machine }), never)).toMatchObject([{ id: "proxy" }]);
    const own = remote({ caFile: "/pmt/none.pem" });
    const plain = machineWith();
    expect(await checkNetwork(makeInput([own], { machine: plain.machine }), never)).toMatchObject([
      { id: "tls", title: expect.stringContaining("caFile /pmt/none.pem cannot be used") },
    ]);
    expect(plain.asked).toEqual([]);
  });
});

describe("the bounds", () => {
  test.each([
    ["the user's own", undefined, {}, true],
    ["switched off", undefined, { enabled: false }, false],
    ["a project's .mcp.json", PROJECT_FILE, {}, false],
    ["a project's .pi/mcp.json", PROJECT_PI, {}, false],
  ])("%s -> %s", (_title, source, entry, expected) => {
    const server = definition("s", { url: "https://h/", ...entry }, source);
    expect(mayProbe({ definition: server })).toBe(expected);
  });

  test("every probe hangs -> the check ends with the signal and counts the servers", async () => {
    const { machine } = machineWith({ lookUp: () => new Promise(() => undefined) });
    const stop = new AbortController();
    const servers = Array.from({ length: 300 }, () => remote());
    const asked = checkNetwork(makeInput(servers, { machine }), stop.signal);
    stop.abort();
    expect(await asked).toMatchObject([
      { id: "unfinished", title: "The addresses of 300 servers were not looked at: there was no time." },
    ]);
  });

  test("many servers -> two names are looked up at a time", async () => {
    let most = 0;
    let open = 0;
    const { machine } = machineWith({
      lookUp: async () => {
        most = Math.max(most, ++open);
        await new Promise((resolve) => setImmediate(resolve));
        open--;
        return [];
      },
    });
    const servers = Array.from({ length: 20 }, () => remote());
    const found = await checkNetwork(makeInput(servers, { machine }), never);
    expect(most).toBe(2);
    expect(found).toMatchObject([{ severity: "ok" }]);
  });
});

describe("attempt", () => {
  const stagesOf = async (server: Examined, ms?: number): Promise<{ found: Finding[]; stages: string[] }> => {
    const input = makeInput([server]);
    const found = await attempt(server, input, ms);
    return { found, stages: input.stages.map(({ name, ok }) => `${name} ${ok}`) };
  };

  test("it connects -> one step", async () => {
    const { found, stages } = await stagesOf(examined("s", { command: "c" }));
    expect([found, stages]).toEqual([[], ["start, handshake and list of tools true"]]);
  });

  test("it fails -> the step failed, and the state tells why", async () => {
    const connect = () => Promise.reject(new ThreadsError("connect_failed", "no"));
    const { found, stages } = await stagesOf(examined("s", { command: "c" }, {}, { connect }));
    expect([found, stages]).toEqual([[], ["start, handshake and list of tools false"]]);
  });

  test("it takes too long -> a warning, and nobody waits", async () => {
    const connect = (): Promise<never> => new Promise(() => undefined);
    const { found } = await stagesOf(examined("s", { command: "c" }, {}, { connect }), 1);
    expect(found).toMatchObject([{ id: "time-out", severity: "warning" }]);
  });

  test("it is switched off -> not connected", async () => {
    const connect = () => Promise.reject(new Error("asked"));
    const { found, stages } = await stagesOf(
      examined("s", { command: "c", enabled: false }, {}, { connect }),
    );
    expect(found).toMatchObject([{ severity: "note", remedy: "/mcp enable s" }]);
    expect(stages).toEqual([]);
  });

  test.each([
    ["answers", async (): Promise<void> => undefined, [], true],
    [
      "is silent",
      (): Promise<void> => Promise.reject(new Error("late")),
      [expect.objectContaining({ id: "ended" })],
      false,
    ],
  ] as const)("it is connected and %s -> a ping, no new connection", async (_title, ping, expected, ok) => {
    const server = examined("s", { command: "c" }, {}, { ifConnected: (task) => task({ ping }) });
    const { found, stages } = await stagesOf(server);
    expect(found).toEqual(expected);
    expect(stages).toEqual([`ping ${ok}`]);
  });
});

describe("judgeTimes", () => {
  const limits = { startMs: 30_000, callMs: 60_000 };
  test.each([
    ["nothing is known", { slowestCallMs: 0, lateCalls: 0 }, []],
    ["half of the start's limit", { startMs: 15_000, slowestCallMs: 0, lateCalls: 0 }, []],
    [
      "more than half",
      { startMs: 15_001, slowestCallMs: 0, lateCalls: 0 },
      ["warning: Its last start took 15.0 s of the 30.0 s that it may take."],
    ],
    [
      "a slow call",
      { slowestCallMs: 50_000, lateCalls: 0 },
      ["note: Its slowest call took 50.0 s, and 60.0 s is the limit without progress."],
    ],
    [
      "late calls",
      { slowestCallMs: 59_000, lateCalls: 2 },
      ["warning: 2 calls got no answer in time; a call may take 60.0 s now."],
    ],
  ])("%s", (_title, timings, expected) => {
    expect(judgeTimes("s", timings, limits).map(({ severity, title }) => `${severity}: ${title}`)).toEqual(
      expected,
    );
  });
});
