/** Owns: what happens before the browser opens, and several sign-ins at once. */

import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  checkSecretTarget,
  isSameSite,
} from "../../../../../../workers/connection/auth/discovery/discovery.ts";
import {
  type Discovered,
  SignInProblem,
  type SignInRecord,
} from "../../../../../../workers/connection/auth/model/model.ts";
import { mixUpOf } from "../../../../../../workers/connection/auth/sign-in/prepare.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { freePort } from "../../../../../support/free-port.ts";
import { browse, partsFor, recordWith, type TargetParts, tinyServer, world } from "./support.ts";

const never = <T>(): Promise<T> => new Promise(() => undefined);

const OLD: SignInRecord = recordWith({
  origin: "https://as.test",
  asked: [],
  registered: [],
  secrets: [],
  odd: {},
});

/** A program of somebody else at a port of loopback. */
async function occupied(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as { port: number }).port;
}

type World = Awaited<ReturnType<typeof world>>;

/** Signs in, with the browser. */
async function through(all: World, target: ReturnType<World["target"]>, agreed = {}): Promise<void> {
  const step = await all.signIns.begin(target, agreed);
  if (step.step !== "open") throw new Error(step.step);
  await browse(step.url);
  await all.ended();
}

describe("the stored sign-in", () => {
  test("it renews itself -> renewed, then the end with the number of tools; nothing is asked", async () => {
    const all = await world();
    const step = await all.signIns.begin(all.target("linear", { record: OLD, renew: async () => true }), {});
    expect(step).toEqual({ step: "renewed", id: expect.any(String) });
    expect(all.ends).toEqual([]);
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
    expect(all.ends).toMatchObject([{ id: "id" in step && step.id }]);
    expect([all.server.asked, all.opened]).toEqual([[], []]);
  });

  const OWN: SignInRecord = { ...OLD, id: "0b0f1a4e-4c1b-4a0c-9d3e-6f2a1b7c8d9e" };
  const FULL: SignInRecord = { ...OLD, requestedScope: "read write", resource: "https://linear.test/mcp" };
  test.each<[string, "open" | "renewed", Partial<OAuthPlan>, SignInRecord]>([
    ["another client", "open", { clientId: "mine" }, FULL],
    ["its client", "renewed", { clientId: "old-client" }, FULL],
    ["a scope more", "open", { scope: "write admin" }, FULL],
    ["a scope less", "renewed", { scope: "write" }, FULL],
    [
      "its scopes in another order, and one that is too long",
      "renewed",
      { scope: `write read ${"a".repeat(3_000)}` },
      FULL,
    ],
    ["another resource", "open", { resource: "https://linear.test" }, FULL],
    ["no resource", "open", { resource: false }, FULL],
    ["its resource", "renewed", { resource: "https://linear.test/mcp" }, FULL],
    ["another issuer", "open", { issuer: "https://other.test" }, FULL],
    ["its issuer, with a slash", "renewed", { issuer: "https://as.test/" }, FULL],
    [
      "another issuer than the one that the user accepted",
      "renewed",
      { issuer: "https://other.test" },
      { ...FULL, acceptedIssuer: "https://as.test" },
    ],
    ["all that it does not hold", "renewed", { scope: "admin", resource: "https://a.test" }, OLD],
    ["a scope, and none was asked for", "open", { scope: "admin" }, OWN],
    ["a resource, and none was sent", "open", { resource: "https://a.test" }, OWN],
    ["no resource, and none was sent", "renewed", { resource: false }, OWN],
  ])("the plan wants %s -> %s", async (_what, step, plan, record) => {
    const all = await world();
    let renewals = 0;
    const renew = async () => ++renewals > 0;
    expect(await all.signIns.begin(all.target("linear", { record, renew, plan }), {})).toMatchObject({
      step,
    });
    expect(renewals).toBe(step === "open" ? 0 : 1);
  });

  test("nothing is stored -> nothing is renewed", async () => {
    const all = await world();
    let renewals = 0;
    const target = all.target("linear", { renew: async () => ++renewals > 0 });
    expect(await all.signIns.begin(target, {})).toMatchObject({ step: "open" });
    expect(renewals).toBe(0);
  });

  test("a machine -> the server is connected, and nothing is looked up or opened", async () => {
    const all = await world({}, { discover: () => Promise.reject(new Error("looked up")) });
    const plan = { grantType: "client_credentials" } as const;
    const target = all.target("linear", { plan, renew: async () => true });
    expect(await all.signIns.begin(target, {})).toEqual({ step: "renewed", id: expect.any(String) });
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
    expect(all.opened).toEqual([]);
  });

  test("a machine that gets no token -> the reason, and no sign-in runs", async () => {
    const all = await world();
    const renew = () =>
      Promise.reject(new SignInProblem("assertion-refused", { expected: "https://as.test" }));
    const target = all.target("linear", { plan: { grantType: "jwt_bearer" }, renew });
    await expect(all.signIns.begin(target, {})).rejects.toMatchObject({
      code: "needs_auth",
      message: "linear: its authorization server refuses the assertion.",
    });
    expect([all.signIns.isRunning("linear"), all.opened, all.server.asked]).toEqual([false, [], []]);
  });

  test("the renewal never ends -> it is told to end, and the browser opens", async () => {
    const all = await world({}, { limits: { renewMs: 1 } });
    const signals: AbortSignal[] = [];
    const renew = (signal: AbortSignal): Promise<boolean> => {
      signals.push(signal);
      return never();
    };
    expect(await all.signIns.begin(all.target("linear", { record: OLD, renew }), {})).toMatchObject({
      step: "open",
    });
    expect(signals.map((signal) => signal.aborted)).toEqual([true]);
  });

  test("the server wants more scope -> no renewal, no question about Pi, and old and new scope are asked", async () => {
    const all = await world();
    const record = { ...recordWith(all.server), requestedScope: "read" };
    const target = all.target("linear", {
      record,
      pi: OLD,
      renew: async () => true,
      challenge: { scheme: "Bearer", error: "insufficient_scope", scope: "write" },
    });
    await through(all, target);
    expect(target.store.record).toMatchObject({ requestedScope: "read write", scope: "read write" });
  });

  test("a plain 401 -> the old scope is not asked again", async () => {
    const all = await world();
    const record = { ...recordWith(all.server), requestedScope: "read" };
    const target = all.target("linear", { record, challenge: { scheme: "Bearer", scope: "write" } });
    await through(all, target);
    expect(target.store.record).toMatchObject({ requestedScope: "write" });
  });
});

describe("Pi's own sign-in", () => {
  test("there is one, and nobody agreed -> a question, and no sign-in runs", async () => {
    const all = await world();
    const target = all.target("linear", { pi: OLD });
    const step = await all.signIns.begin(target, {});
    expect(step).toEqual({ step: "ask", question: { about: "pi", text: expect.stringContaining("linear") } });
    expect(all.signIns.isRunning("linear")).toBe(false);
    expect([all.ends, all.server.asked, target.store.pi]).toEqual([[], [], OLD]);
  });

  test("yes -> it is moved, its tokens are secrets, and the server connects", async () => {
    const all = await world();
    const target = all.target("linear", { pi: OLD });
    expect(await all.signIns.begin(target, { fromPi: true })).toMatchObject({ step: "renewed" });
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
    expect([target.store.record, target.store.pi]).toEqual([OLD, undefined]);
    expect(target.secrets).toEqual(["old-access-token", "old-refresh-token"]);
  });

  test.each([
    ["the server wants a token that is bound to a key", { challenge: { scheme: "DPoP", dpop: "required" } }],
    ["oauth.dpop wants one", { plan: { dpop: true } }],
  ] as const)(
    "%s -> the browser opens, and nothing is asked about Pi's bearer token",
    async (_name, more) => {
      const all = await world();
      const target = all.target("linear", { pi: OLD, ...more });
      expect(await all.signIns.begin(target, {})).toMatchObject({ step: "open" });
      expect(target.store.pi).toEqual(OLD);
    },
  );

  test("the plan wants another client -> the browser opens, and nothing is asked about it", async () => {
    const all = await world();
    const target = all.target("linear", { pi: OLD, plan: { clientId: "mine" } });
    expect(await all.signIns.begin(target, {})).toMatchObject({ step: "open" });
    expect(target.store.pi).toEqual(OLD);
  });

  test("no -> the browser opens, and Pi keeps its own", async () => {
    const all = await world();
    const target = all.target("linear", { pi: OLD });
    expect(await all.signIns.begin(target, { fromPi: false })).toMatchObject({ step: "open" });
    expect(target.store.pi).toEqual(OLD);
  });

  test("yes, but it is gone meanwhile -> the browser opens", async () => {
    const all = await world();
    const target = all.target("linear", { pi: OLD });
    target.store.takeFromPi = async () => undefined;
    expect(await all.signIns.begin(target, { fromPi: true })).toMatchObject({ step: "open" });
  });
});

describe("an issuer that differs", () => {
  const FOUND = "https://auth.found.test";
  const differing = async (found = FOUND, expected = "https://mcp.expected.test") => {
    const server = await tinyServer();
    const { discover } = partsFor(server);
    return world(
      {},
      {
        ...partsFor(server),
        discover: (options) => {
          if (options.acceptedIssuer === found) return discover(options);
          return Promise.reject(new SignInProblem("issuer-differs", { found, expected }));
        },
      },
    );
  };

  test("nobody agreed -> a question with both names", async () => {
    const all = await differing();
    expect(await all.signIns.begin(all.target("linear"), {})).toEqual({
      step: "ask",
      question: {
        about: "issuer",
        issuer: FOUND,
        text: `linear should use https://mcp.expected.test, which says it is ${FOUND}. Trust it?`,
      },
    });
  });

  test("the user agreed to it -> the browser opens, and the record keeps the agreement", async () => {
    const all = await differing();
    const target = all.target("linear");
    await through(all, target, { issuer: FOUND });
    expect(target.store.record).toMatchObject({ acceptedIssuer: FOUND });
  });

  test("the record keeps the agreement -> no second question", async () => {
    const all = await differing();
    const target = all.target("linear", { record: { ...OLD, acceptedIssuer: FOUND } });
    expect(await all.signIns.begin(target, {})).toMatchObject({ step: "open" });
  });

  test("the user agreed to another one -> the failure, no question", async () => {
    const all = await differing();
    const begun = all.signIns.begin(all.target("linear"), { issuer: "https://other.test" });
    await expect(begun).rejects.toMatchObject({ code: "needs_auth", data: { reason: "issuer-differs" } });
  });

  test.each(["no url", `${FOUND}/\u202e`, `${FOUND}/${"x".repeat(400)}`, ""])(
    "its name cannot be shown as it is: %j -> the failure, no question",
    async (found) => {
      const all = await differing(found);
      const begun = all.signIns.begin(all.target("linear"), {});
      await expect(begun).rejects.toMatchObject({ data: { reason: "issuer-differs" } });
    },
  );

  test("the expected name is long and has control characters -> the question is one bounded line", async () => {
    const all = await differing(FOUND, `https://a.test/\n\u001b[31m${"x".repeat(2_000)}`);
    const step = await all.signIns.begin(all.target("linear"), {});
    const text = step.step === "ask" ? step.question.text : "";
    expect(text).toMatch(/^[ -~…]{100,400}$/);
  });
});

describe("failures before the browser", () => {
  test("discovery never answers -> timed-out, and its requests are told to end", async () => {
    const signals: (AbortSignal | null | undefined)[] = [];
    const all = await world(
      {},
      {
        discover: async ({ requests }) => {
          await requests.fetch("https://as.test/", {});
          return never();
        },
        limits: { talkMs: 1 },
      },
    );
    const fetch = (_url: string, { signal }: { signal?: AbortSignal | null }): Promise<Response> => {
      signals.push(signal);
      return never();
    };
    const begun = all.signIns.begin(all.target("linear", { requests: { fetch } }), {});
    await expect(begun).rejects.toMatchObject({ code: "needs_auth", data: { reason: "timed-out" } });
    expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
    expect([all.signIns.isRunning("linear"), all.ends]).toEqual([false, []]);
  });

  test.each<[string, Error, object]>([
    ["a problem", new SignInProblem("no-registration", { url: "https://as.test" }), { code: "needs_auth" }],
    [
      "a problem of the network",
      new SignInProblem("unreachable", { url: "https://as.test" }),
      { code: "connect_failed" },
    ],
    ["a mistake in the program", new TypeError("x is not a function"), { code: "internal" }],
  ])("%s -> begin rejects with it, and the next sign-in may begin", async (_title, error, expected) => {
    let fails = true;
    const server = await tinyServer();
    const { discover, ...parts } = partsFor(server);
    const all = await world(
      {},
      { ...parts, discover: (options) => (fails ? Promise.reject(error) : discover(options)) },
    );
    await expect(all.signIns.begin(all.target("linear"), {})).rejects.toMatchObject(expected);
    fails = false;
    expect(await all.signIns.begin(all.target("linear"), {})).toMatchObject({ step: "open" });
  });

  test("a client is registered with a secret -> no text may show it, even if nobody finishes the sign-in", async () => {
    const all = await world(
      {},
      {
        clientFor: async () => ({ id: "c", secret: "s3cret", method: "client_secret_post", kind: "dynamic" }),
      },
    );
    const target = all.target("linear");
    expect(await all.signIns.begin(target, {})).toMatchObject({ step: "open" });
    expect(target.secrets).toContain("s3cret");
  });

  test("secrets in the words of a failure -> they are redacted", async () => {
    const discover = () => Promise.reject(new SignInProblem("refused", { what: "token t0ps3cret is bad" }));
    const all = await world({}, { discover });
    const redact = (text: string): string => text.replaceAll("t0ps3cret", "[redacted]");
    const begun = all.signIns.begin(all.target("linear", { redact }), {});
    await expect(begun).rejects.toThrow("token [redacted] is bad");
  });

  test.each(["http://as.test/authorize?state=s", "javascript:alert(1)", "file:///etc/passwd"])(
    "the authorization server names %s -> refused, and no browser opens",
    async (url) => {
      const server = await tinyServer();
      const { beginAuthorization, ...parts } = partsFor(server);
      const all = await world(
        {},
        {
          ...parts,
          beginAuthorization: async (...args) => ({ ...(await beginAuthorization(...args)), url }),
        },
      );
      const begun = all.signIns.begin(all.target("linear"), {});
      await expect(begun).rejects.toMatchObject({ data: { reason: "not-https" } });
      await expect(begun).rejects.not.toThrow(/state=/);
      expect(all.opened).toEqual([]);
    },
  );
});

describe("the redirect URI", () => {
  const begin = async (parts: TargetParts = {}, odd = {}) => {
    const all = await world(odd);
    const step = await all.signIns.begin(all.target("linear", parts), {});
    if (step.step !== "open") throw new Error(step.step);
    return { all, step };
  };

  test("a configured port that is busy -> port-in-use that names it", async () => {
    const callbackPort = await occupied();
    await expect(begin({ plan: { callbackPort } })).rejects.toMatchObject({
      message: expect.stringContaining(`port ${callbackPort}`),
      data: { reason: "port-in-use" },
    });
  });

  test("the stored client's port is busy -> another port, and a new registration", async () => {
    const all = await world();
    all.server.odd.iss = all.server.origin;
    const port = await occupied();
    const record = recordWith(all.server, { redirectUris: [`http://127.0.0.1:${port}/callback`] });
    const step = await all.signIns.begin(all.target("linear", { record }), {});
    expect(step).toMatchObject({ url: expect.stringContaining("client_id=client-1") });
    expect(step).not.toMatchObject({ redirectUri: expect.stringContaining(`:${port}/`) });
  });

  test.each<[string, Partial<SignInRecord>, client: string]>([
    ["this authorization server", {}, "old-client"],
    ["another authorization server", { issuer: "https://other.test" }, "client-1"],
    ["one of this name at another site", { tokenEndpoint: "https://other.test/token" }, "client-1"],
  ])("the stored client belongs to %s -> used: $2", async (_title, more, client) => {
    const all = await world();
    all.server.odd.iss = all.server.origin;
    const redirectUris = [`http://127.0.0.1:${await freePort()}/callback`];
    const record: SignInRecord = { ...recordWith(all.server, { redirectUris }), ...more };
    const step = await all.signIns.begin(all.target("linear", { record }), {});
    expect(step).toMatchObject({ url: expect.stringContaining(`client_id=${client}`) });
  });

  test.each<[string, () => Promise<TargetParts>]>([
    ["a free port", async () => ({})],
    ["a configured port", async () => ({ plan: { callbackPort: await freePort() } })],
  ])(
    "127.0.0.1 is refused, %s -> localhost at the same port, and the browser's answer arrives",
    async (_title, parts) => {
      const { all, step } = await begin(await parts(), { refusedHost: "127.0.0.1" });
      expect(step.redirectUri).toMatch(/^http:\/\/localhost:\d+\/callback/);
      expect(all.server.registered).toEqual([step.redirectUri]);
      expect((await browse(step.url)).body).toContain("Signed in");
      expect(await all.ended()).toMatchObject({ ok: true });
    },
  );

  test("a configured redirect URI is refused -> the failure names it, and nothing else is tried", async () => {
    const redirectUri = `http://127.0.0.1:${await freePort()}/mine`;
    await expect(begin({ plan: { redirectUri } }, { refusedHost: "127.0.0.1" })).rejects.toMatchObject({
      message: expect.stringContaining(redirectUri),
      data: { reason: "redirect-refused" },
    });
  });

  test("a sign-in fails before the browser -> its port is free again", async () => {
    const callbackPort = await freePort();
    const all = await world({ refusedHost: "127.0.0.1" });
    const plan = { redirectUri: `http://127.0.0.1:${callbackPort}/mine` };
    await expect(all.signIns.begin(all.target("linear", { plan }), {})).rejects.toThrow();
    await expect
      .poll(() =>
        browse(plan.redirectUri).then(
          () => "answers",
          () => "closed",
        ),
      )
      .toBe("closed");
  });
});

describe("several sign-ins", () => {
  test("the same server twice at once -> one step, one discovery, one browser", async () => {
    const all = await world();
    const [one, other] = await Promise.all([1, 2].map(() => all.signIns.begin(all.target("linear"), {})));
    expect(one).toEqual(other);
    expect(all.opened).toHaveLength(1);
  });

  test("the same server later -> the same step with the time that is left", async () => {
    const all = await world();
    const first = await all.signIns.begin(all.target("linear"), {});
    const second = await all.signIns.begin(all.target("linear"), {});
    if (first.step !== "open" || second.step !== "open") throw new Error("no step");
    expect({ ...second, endsInMs: 0 }).toEqual({ ...first, endsInMs: 0 });
    expect(second.endsInMs).toBeLessThanOrEqual(first.endsInMs);
    expect(all.opened).toHaveLength(1);
  });

  test("the same server at another url -> the first sign-in ends, and another begins", async () => {
    const all = await world();
    const first = await all.signIns.begin(all.target("linear"), {});
    const url = new URL("https://other.test/mcp");
    const second = await all.signIns.begin(all.target("linear", { url }), {});
    expect(second).not.toMatchObject({ id: "id" in first && first.id });
    expect(await all.ended()).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(all.signIns.isRunning("linear")).toBe(true);
  });

  test("two servers with one configured port -> each gets its own answer", async () => {
    const callbackPort = await freePort();
    const all = await world();
    all.server.odd.iss = all.server.origin;
    const targets = ["linear", "notion"].map((name) => all.target(name, { plan: { callbackPort } }));
    const steps = await Promise.all(targets.map((target) => all.signIns.begin(target, {})));
    for (const step of [...steps].reverse()) if (step.step === "open") await browse(step.url);
    await all.ended(2);
    expect(all.ends.map(({ server, result }) => [server, result.ok])).toEqual([
      ["notion", true],
      ["linear", true],
    ]);
    const tokens = targets.map(({ store }) => store.record?.access_token);
    expect(new Set(tokens).size).toBe(2);
  });

  test("eight run -> the ninth is refused until one has ended", async () => {
    const all = await world();
    const names = Array.from({ length: 8 }, (_, i) => `s${i}`);
    const steps = await Promise.all(names.map((name) => all.signIns.begin(all.target(name), {})));
    await expect(all.signIns.begin(all.target("ninth"), {})).rejects.toMatchObject({
      code: "needs_auth",
      message: "ninth: 8 other sign-ins wait for their browsers.",
      data: { reason: "too-many" },
    });
    const [first] = steps;
    if (first && "id" in first) all.signIns.cancel(first.id);
    expect(await all.signIns.begin(all.target("ninth"), {})).toMatchObject({ step: "open" });
  });

  test("a server was edited while its sign-in began -> it may begin anew at once", async () => {
    const all = await world();
    const first = all.signIns.begin(all.target("linear"), {});
    const failed = expect(first).rejects.toMatchObject({ code: "cancelled" });
    all.signIns.abandon("linear");
    expect(await all.signIns.begin(all.target("linear"), {})).toMatchObject({ step: "open" });
    await failed;
  });
});

describe("whoever asked for the sign-in waits no longer", () => {
  const CANCELLED = { code: "cancelled", data: { reason: "cancelled" } };

  test("before the link is there -> the sign-in ends, and no browser opens later", async () => {
    const registration = Promise.withResolvers<void>();
    const server = await tinyServer();
    const { clientFor } = partsFor(server);
    const all = await world(
      {},
      {
        ...partsFor(server),
        clientFor: async (...wanted) => {
          registration.resolve();
          return clientFor(...wanted);
        },
      },
    );
    const asks = new AbortController();
    const step = all.signIns.begin(all.target("linear"), {}, asks.signal);
    await registration.promise;
    asks.abort();
    await expect(step).rejects.toMatchObject(CANCELLED);
    expect(all.signIns.isRunning("linear")).toBe(false);
    await all.signIns.close();
    expect(all.opened).toEqual([]);
  });

  test("before it begins -> nothing is asked", async () => {
    const all = await world();
    const step = all.signIns.begin(all.target("linear"), {}, AbortSignal.abort());
    await expect(step).rejects.toMatchObject(CANCELLED);
    expect(all.server.asked).toEqual([]);
  });

  test("after the link is there -> the sign-in goes on", async () => {
    const all = await world();
    const asks = new AbortController();
    const step = await all.signIns.begin(all.target("linear"), {}, asks.signal);
    asks.abort();
    await browse("url" in step ? step.url : "");
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
  });
});

test.each<[a: string, b: string, isSame: boolean]>([
  ["https://a.example/x", "https://a.example/y", true],
  ["https://a.example", "https://a.example:8443", true],
  ["https://a.example.", "https://a.example", true],
  ["https://cf.mcp.a.example", "https://mcp.a.example", true],
  ["https://a.example", "https://login.a.example", true],
  ["https://api.a.example", "https://www.a.example", false],
  ["https://evil.workers.dev", "https://bank.workers.dev", false],
  ["https://evil.example", "https://accounts.bank.example", false],
  ["https://evil-a.example", "https://a.example", false],
  ["https://a.example.evil.test", "https://a.example", false],
  ["https://a.com", "https://com", false],
  ["http://127.0.0.1:1", "http://127.0.0.1:1", true],
  ["http://127.0.0.1:1", "http://127.0.0.1:2", false],
  ["http://localhost:1", "http://localhost:2", false],
  ["http://localhost:1", "http://127.0.0.1:1", false],
  ["http://a.localhost:1", "http://localhost:1", false],
  ["https://[2001:db8::1]:1", "https://[2001:db8::1]:2", false],
  ["https://1.2.3.4", "https://9.1.2.3.4.example", false],
])("%s and %s -> the same site: %s", (a, b, isSame) => {
  expect(isSameSite(new URL(a), new URL(b))).toBe(isSame);
  expect(isSameSite(new URL(b), new URL(a))).toBe(isSame);
});

const PLAN: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto" };
const PAGE = "https://accounts.bank.example/authorize";
const found = (
  metadata: Partial<Discovered["metadata"]> = {},
  more: Partial<Discovered> = {},
): Discovered => ({
  metadata: {
    issuer: "https://evil.example",
    authorization_endpoint: PAGE,
    token_endpoint: "https://evil.example/token",
    ...metadata,
  },
  foundAt: "https://evil.example/.well-known/oauth-authorization-server",
  ...more,
});
const asked = (discovered: Discovered, plan: Partial<OAuthPlan> = {}, isOwnPlan = true) =>
  mixUpOf(discovered, { server: "docs", plan: { ...PLAN, ...plan }, isOwnPlan });

describe("mixUpOf", () => {
  test("the page is of another site -> who shows it, who gets the code, and who says so", () => {
    expect(asked(found({ token_endpoint: "https://t.evil.example/token" }))).toEqual({
      page: new URL(PAGE),
      question: {
        about: "endpoints",
        endpoints: "https://evil.example https://accounts.bank.example https://t.evil.example",
        text: "docs sends you to sign in at accounts.bank.example, and the code of that sign-in goes to t.evil.example, as evil.example says. Whoever gets the code can act as you at accounts.bank.example. Go on only if you know that they belong together.",
      },
    });
  });

  const OWN_PAGE = "https://evil.example/authorize";
  const BANK = { issuer: "https://bank.example" };
  const NAMED = { issuer: "https://evil.example" };
  const METADATA = { authServerMetadataUrl: "https://evil.example/m" };
  const SKIPS = { skipIssuerMetadataValidation: true };
  const named = (issuer: string, metadata: Partial<Discovered["metadata"]> = {}): Discovered =>
    found({ authorization_endpoint: OWN_PAGE, ...metadata, issuer }, { acceptedIssuer: issuer });
  const AS_BANK = named(BANK.issuer);
  const BELOW = named("https://cf.evil.example");
  const BELOW_ELSEWHERE = named("https://cf.evil.example", { token_endpoint: "https://api.example/token" });

  test("the page is its own, and it calls itself another server -> so it is said, with the secret that goes along", () => {
    const { question } = asked(AS_BANK, { ...BANK, clientSecret: "s3cret" }) ?? {};
    expect(question).toEqual({
      about: "endpoints",
      endpoints: "https://evil.example https://evil.example https://evil.example",
      text: "docs sends you to sign in at evil.example, and the code of that sign-in and your client secret go to evil.example, as evil.example says, which calls itself bank.example. Whoever gets the code can act as you at bank.example. Go on only if you know that they belong together.",
    });
  });

  test.each<[string, Discovered, Partial<OAuthPlan>, isOwnPlan: boolean, isAsked: boolean]>([
    ["its own page", found({ authorization_endpoint: OWN_PAGE }), {}, true, false],
    [
      "its own page, the token endpoint elsewhere (Google)",
      found({ authorization_endpoint: OWN_PAGE, token_endpoint: "https://api.example/token" }),
      {},
      true,
      false,
    ],
    ["page and token endpoint of one other site", found({ token_endpoint: `${PAGE}/token` }), {}, true, true],
    ["the name of the other site", found({ issuer: "https://accounts.bank.example" }), {}, true, true],
    ["an issuer that the user names", found(), NAMED, true, false],
    ["an issuer that a project's file names", found(), NAMED, false, true],
    [
      "an issuer that the user names, elsewhere",
      found(BANK, { acceptedIssuer: BANK.issuer }),
      BANK,
      true,
      true,
    ],
    ["its own page, with the name of the issuer that the user names", AS_BANK, BANK, true, true],
    ["its own page, with a name that the user once accepted", AS_BANK, {}, true, true],
    ["its own page, with any name, since all are accepted", AS_BANK, SKIPS, true, false],
    ["its own page, with the name of one, and any is accepted", AS_BANK, { ...BANK, ...SKIPS }, true, true],
    ["page and token endpoint of the site of the named issuer (Atlassian)", BELOW, {}, true, false],
    ["the same, with the token endpoint elsewhere", BELOW_ELSEWHERE, {}, true, true],
    ["metadata that the user names", found(), METADATA, true, false],
    ["metadata that a project's file names", found(), METADATA, false, true],
    ["no check of the issuer", found(), { skipIssuerMetadataValidation: true }, true, true],
  ])("%s -> asked: %$4", (_name, discovered, plan, isOwnPlan, isAsked) => {
    expect(asked(discovered, plan, isOwnPlan) !== undefined).toBe(isAsked);
  });
});

describe("checkSecretTarget", () => {
  const ISSUER = "https://evil.example";
  const KEY = { privateKeyFile: "/key.pem" };
  const GRANT = { grantType: "jwt_bearer", assertionFile: "/a" } as const;
  const COMPANY = { grantType: "identity_provider", clientId: "a" } as const;
  const OTHER = { acceptedIssuer: ISSUER };
  const SITE = `${ISSUER}/token`;
  const ELSEWHERE = "https://tokens.example/token";
  type Row = [
    title: string,
    token: string,
    plan: Partial<OAuthPlan>,
    more: Partial<Discovered>,
    key?: string,
  ];
  test.each<Row>([
    ["the server's own site", "https://docs.example/token", {}, {}],
    ["a name below the server's", "https://auth.docs.example/token", {}, {}],
    ["another site", SITE, {}, {}, "issuer"],
    ["a neighbour below one name", "https://auth.example/token", {}, {}, "issuer"],
    ["this machine, for a server elsewhere", "http://127.0.0.1:8080/token", {}, {}, "issuer"],
    ["another site, whose issuer is named", SITE, { issuer: ISSUER }, {}],
    ["wherever the named issuer says", ELSEWHERE, { issuer: ISSUER }, {}],
    ["another site with the named name", ELSEWHERE, { issuer: ISSUER }, OTHER, "authServerMetadataUrl"],
    ["the named issuer's site, whoever says so", SITE, { issuer: ISSUER }, OTHER],
    ["another site, any issuer accepted", SITE, { skipIssuerMetadataValidation: true }, OTHER, "issuer"],
    ["wherever the named metadata say", ELSEWHERE, { authServerMetadataUrl: `${ISSUER}/m` }, {}],
    ["another site, proof by a key", SITE, KEY, {}],
    ["another site that calls itself another, proof by a key", SITE, KEY, OTHER, "issuer"],
    ["another site, proof by a ready assertion", SITE, { assertionFile: "/a" }, {}, "issuer"],
    ["another site, an assertion as the grant", SITE, { ...KEY, ...GRANT }, {}, "issuer"],
    ["another site that the user names, an assertion as the grant", SITE, { ...GRANT, issuer: ISSUER }, {}],
    ["another site, the company's assertion", SITE, { ...KEY, ...COMPANY }, {}, "issuer"],
    ["another site that the user names, the company's assertion", SITE, { ...COMPANY, issuer: ISSUER }, {}],
  ])("%s -> refused: %$4", (_title, token, plan, more, key) => {
    const check = () =>
      checkSecretTarget(found({ issuer: ISSUER, token_endpoint: token }, more), {
        plan: { ...PLAN, ...plan },
        url: new URL("https://docs.example/mcp"),
      });
    if (key === undefined) return expect(check()).toBeUndefined();
    return expect(check).toThrow(
      expect.objectContaining({
        kind: "secret-elsewhere",
        facts: expect.objectContaining({ key, url: token }),
      }),
    );
  });

  test("the server and the token endpoint are on this machine -> one site, whatever the ports", () => {
    const discovered = found({ token_endpoint: "http://localhost:8080/token" });
    expect(
      checkSecretTarget(discovered, { plan: PLAN, url: new URL("http://127.0.0.1:3000/mcp") }),
    ).toBeUndefined();
  });
});
