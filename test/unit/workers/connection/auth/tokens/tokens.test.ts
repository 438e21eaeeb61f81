/** Owns: the token of the next request, over a store in memory and a real authorization server. */

import { describe, expect, onTestFinished, test } from "vitest";
import {
  type AuthChallenge,
  type GivenTokens,
  isExpired,
  isFresh,
  SignInProblem,
  type SignInRecord,
} from "../../../../../../workers/connection/auth/model/model.ts";
import { createKey } from "../../../../../../workers/connection/auth/requests/dpop.ts";
import { createAuthRequests } from "../../../../../../workers/connection/auth/requests/requests.ts";
import { SYSTEM_STORE } from "../../../../../../workers/connection/auth/store/in-system.ts";
import type { Unwritten } from "../../../../../../workers/connection/auth/store/record.ts";
import type { SignInStore } from "../../../../../../workers/connection/auth/store/store.ts";
import { createMachine } from "../../../../../../workers/connection/auth/tokens/refresh.ts";
import { createStepUps, ServerTokens } from "../../../../../../workers/connection/auth/tokens/tokens.ts";
import { createHttpClient } from "../../../../../../workers/connection/web/client.ts";
import { type Handler, serve, type TestServer } from "../../../../../support/http-server.ts";

const NOW = 1_000_000_000;
const HOUR = 3_600_000;
const GIVEN = "/agent/mcp-oauth/s/tokens.json";

/** A token endpoint that issues `access-1`, `access-2` and so on. */
const issues: Handler = (_asked, response, nth) => {
  const answer = { access_token: `access-${nth + 1}`, token_type: "Bearer", expires_in: 3_600 };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
};
const refuses =
  (status: number, error: string): Handler =>
  (_asked, response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error }));

interface At {
  tokens: ServerTokens;
  /** What the store holds. */
  held: { record: SignInRecord | undefined };
  server: TestServer;
  notes: string[];
  secrets: Set<string>;
  clock: { nowMs: number };
  renewing: number[];
}

const signal = new AbortController().signal;
const over = { obtainedAt: NOW - HOUR, expiresAt: NOW - 1 };
const soonOver = { obtainedAt: NOW - HOUR, expiresAt: NOW + 1_000 };
const good = { obtainedAt: NOW, expiresAt: NOW + HOUR };

interface Options {
  stored?: Partial<SignInRecord> | undefined;
  given?: GivenTokens;
  endpoint?: Handler;
  isMachine?: boolean;
  /** `oauth.dpop` */
  dpop?: boolean;
  /** Why the store takes nothing. */
  unwritten?: Unwritten;
  /** Why the system's store, which gives the sign-in, would not take the next one. */
  takesNone?: string;
  /** What another process has written when the first renewal marks its own. */
  overtakenBy?: Partial<SignInRecord>;
  /** The server's metadata name its own origin as the authorization server, which has no metadata. */
  namesItself?: boolean;
}

async function open({
  stored,
  given,
  endpoint = issues,
  namesItself = false,
  dpop,
  unwritten,
  overtakenBy,
  takesNone,
  isMachine = false,
}: Options): Promise<At> {
  const server = await serve((asked, response, nth) => {
    if (asked.http === "POST") return endpoint(asked, response, nth);
    if (!namesItself || !asked.path.includes("protected-resource")) return response.writeHead(404).end();
    const metadata = { authorization_servers: [`http://${asked.headers.host}`] };
    return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metadata));
  });
  const url = new URL("/mcp", server.url);
  const client = createHttpClient({});
  onTestFinished(() => client.close());
  const requests = createAuthRequests({ client, server: url, signal });
  const notes: string[] = [];
  const onNote = (note: string): void => void notes.push(note);
  const held: At["held"] = {
    record: stored && {
      version: 1,
      server: "s",
      url: url.href,
      issuer: url.origin,
      tokenEndpoint: `${url.origin}/token`,
      client: { id: "c", method: "none", kind: "dynamic" },
      token_type: "Bearer",
      ...stored,
    },
  };
  let others = overtakenBy;
  const store: Pick<SignInStore, "read" | "locked" | "check"> = {
    check: async () => {
      if (takesNone !== undefined) throw new SignInProblem("system-store", { what: takesNone });
    },
    read: async () => ({
      ...(held.record ? { record: held.record } : {}),
      ...(given ? { given: { tokens: given, path: GIVEN } } : {}),
    }),
    locked: (work) =>
      work({
        get record() {
          return held.record;
        },
        write: async (record) => {
          held.record = record;
        },
        tryToWrite: async (record) => {
          if (unwritten) return unwritten;
          held.record = others && held.record ? { ...held.record, ...others } : record;
          others = undefined;
          return undefined;
        },
        forget: async () => {
          held.record = undefined;
        },
      }),
  };
  const secrets = new Set<string>();
  const clock = { nowMs: NOW };
  const renewing: number[] = [];
  const tokens = new ServerTokens({
    server: "s",
    url,
    store: store as SignInStore,
    isMachine,
    through: () => undefined,
    dpop,
    grant: async () => ({
      plan: { grantType: "authorization_code", clientRegistration: "auto" },
      requests,
      onNote,
    }),
    onSecret: (secret) => secrets.add(secret),
    onNote,
    onRenewing: (by) => renewing.push(by),
    onStatus: () => undefined,
    nowMs: () => clock.nowMs,
  });
  return { tokens, held, server, notes, secrets, clock, renewing };
}

const posts = ({ server }: At): number => server.asked.filter(({ http }) => http === "POST").length;
const kind = (error: unknown): unknown => (error instanceof SignInProblem ? error.kind : error);
const outcome = (promise: Promise<unknown>): Promise<unknown> => promise.catch(kind);
const refused = (sent: string | undefined, more: object = {}) => ({
  status: 401,
  challenge: { scheme: "Bearer" },
  sent,
  isRepeated: false,
  ...more,
});

test("nothing stored -> no token, and nothing is asked", async () => {
  const at = await open({});
  expect(await at.tokens.token(signal)).toBeUndefined();
  expect(at.tokens.status).toBeUndefined();
  expect(at.server.asked).toEqual([]);
});

test("a good token -> it is used, and no text may show it", async () => {
  const at = await open({ stored: { access_token: "a", refresh_token: "r", ...good } });
  expect(await at.tokens.token(signal)).toBe("a");
  expect(at.tokens.status).toEqual({ state: "signed-in", expiresAt: NOW + HOUR, renews: true });
  expect([...at.secrets]).toEqual(["a", "r"]);
  expect(at.server.asked).toEqual([]);
});

test("a token that is over, 20 requests at once -> one renewal for all", async () => {
  const at = await open({ stored: { access_token: "a", refresh_token: "r", scope: "x", ...over } });
  const tokens = await Promise.all(Array.from({ length: 20 }, () => at.tokens.token(signal)));
  expect(new Set(tokens)).toEqual(new Set(["access-1"]));
  expect(posts(at)).toBe(1);
  // What the answer leaves out stays.
  expect(at.held.record).toMatchObject({
    access_token: "access-1",
    refresh_token: "r",
    scope: "x",
    obtainedAt: NOW,
  });
  expect(at.held.record?.refreshing).toBeUndefined();
  expect(at.secrets).toContain("access-1");
  expect(at.renewing).toEqual([1, -1]);
});

const OTHERS = { access_token: "b", refresh_token: "r2", scope: "theirs" };
test.each<[string, Partial<SignInRecord>, token: string, posts: number]>([
  ["is good", good, "b", 0],
  ["is over", over, "access-1", 1],
])(
  "another process renewed while this one stood still, and its token %s -> $2, and the old refresh token is not sent",
  async (_title, times, token, asked) => {
    const stored = { access_token: "a", refresh_token: "r", ...over };
    const at = await open({ stored, overtakenBy: { ...OTHERS, ...times } });
    expect(await at.tokens.token(signal)).toBe(token);
    expect(posts(at)).toBe(asked);
    // A renewal keeps of its sign-in what the answer leaves out.
    expect(at.held.record).toMatchObject({ access_token: token, refresh_token: "r2", scope: "theirs" });
  },
);

test.each<[string, Pick<Options, "unwritten" | "takesNone">]>([
  ["does not take the sign-in", { unwritten: { path: SYSTEM_STORE, what: "it is locked" } }],
  ["can be read and not written", { takesNone: "it is locked" }],
])("the system's store %s -> its token is not spent", async (_title, store) => {
  const stored = { access_token: "a", refresh_token: "r" };
  const at = await open({ stored: { ...stored, ...over }, ...store });
  expect(await outcome(at.tokens.token(signal))).toBe("system-store");
  expect(posts(at)).toBe(0);
  expect(at.held.record).toMatchObject(stored);
});

test("the disk does not take the sign-in -> it is renewed all the same, in memory", async () => {
  const unwritten = { path: "/home/me/a.json", what: "EROFS" };
  const at = await open({ stored: { access_token: "a", refresh_token: "r", ...over }, unwritten });
  expect(await at.tokens.token(signal)).toBe("access-1");
  expect(posts(at)).toBe(1);
});

test("a renewal that brings another refresh token -> no text may show the old and the new tokens", async () => {
  const endpoint: Handler = (_asked, response) => {
    const answer = { access_token: "access-2", refresh_token: "refresh-2", token_type: "Bearer" };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  };
  const at = await open({
    stored: { access_token: "access-1", refresh_token: "refresh-1", ...over },
    endpoint,
  });
  expect(await at.tokens.token(signal)).toBe("access-2");
  expect([...at.secrets].sort()).toEqual(["access-1", "access-2", "refresh-1", "refresh-2"]);
});

test("a token that is over and has no refresh token -> it is tried: the server says whether it still works", async () => {
  const at = await open({ stored: { access_token: "a", ...over } });
  expect(await at.tokens.token(signal)).toBe("a");
  expect(await outcome(at.tokens.afterRefusal(refused("a"), signal))).toBe("expired");
  expect(at.tokens.status).toEqual({ state: "needed" });
});

test("a renewal before the end that fails -> the old token, one note, the next try after 30 s", async () => {
  const at = await open({
    stored: { access_token: "a", refresh_token: "r", obtainedAt: NOW - HOUR, expiresAt: NOW + 40_000 },
    endpoint: refuses(503, "busy"),
  });
  expect(await at.tokens.token(signal)).toBe("a");
  expect(await at.tokens.token(signal)).toBe("a");
  expect(posts(at)).toBe(1);
  expect(at.notes).toEqual(["could not renew its sign-in before its end (unavailable)"]);
  at.clock.nowMs += 30_000;
  expect(await at.tokens.token(signal)).toBe("a");
  expect(posts(at)).toBe(2);
  expect(at.held.record).toMatchObject({ access_token: "a", refresh_token: "r" });
});

test.each([
  [503, "busy", "unavailable"],
  [429, "busy", "unavailable"],
])("status %i when the token is over -> %s, and nothing is lost", async (status, error, expected) => {
  const at = await open({
    stored: { access_token: "a", refresh_token: "r", ...over },
    endpoint: refuses(status, error),
  });
  expect(await outcome(at.tokens.token(signal))).toBe(expected);
  expect(at.held.record).toMatchObject({ access_token: "a", refresh_token: "r" });
  expect(at.held.record?.refreshing).toBeUndefined();
});

test("the authorization server ended the sign-in -> the tokens are dropped, the client stays", async () => {
  const at = await open({
    stored: { access_token: "a", refresh_token: "r", ...soonOver },
    endpoint: refuses(400, "invalid_grant"),
  });
  expect(await outcome(at.tokens.token(signal))).toBe("refresh-refused");
  expect(at.held.record?.access_token).toBeUndefined();
  expect(at.held.record?.refresh_token).toBeUndefined();
  expect(at.held.record?.client.id).toBe("c");
  expect(at.tokens.status).toEqual({ state: "needed" });
});

test("the client is gone -> a dynamic client is forgotten, too", async () => {
  const at = await open({
    stored: { access_token: "a", refresh_token: "r", ...over },
    endpoint: refuses(401, "invalid_client"),
  });
  expect(await outcome(at.tokens.token(signal))).toBe("client-unknown");
  expect(at.held.record).toBeUndefined();
});

test("the client of the configuration is gone -> only the tokens are dropped", async () => {
  const at = await open({
    stored: {
      access_token: "a",
      refresh_token: "r",
      client: { id: "c", method: "none", kind: "configured" },
      ...over,
    },
    endpoint: refuses(401, "invalid_client"),
  });
  expect(await outcome(at.tokens.token(signal))).toBe("client-unknown");
  expect(at.held.record).toMatchObject({ client: { id: "c" } });
});

test("another program has renewed meanwhile -> its token counts, and nothing is dropped", async () => {
  const at = await open({
    stored: { access_token: "a", refresh_token: "r", ...over },
    endpoint: (asked, response, nth) => {
      at.held.record = { ...(at.held.record as SignInRecord), access_token: "theirs", ...good };
      refuses(400, "invalid_grant")(asked, response, nth);
    },
  });
  expect(await at.tokens.token(signal)).toBe("theirs");
  expect(at.held.record?.access_token).toBe("theirs");
});

test("a refusal of the token at hand -> another one after a renewal", async () => {
  const at = await open({ stored: { access_token: "a", refresh_token: "r", ...good } });
  expect(await at.tokens.afterRefusal(refused("a"), signal)).toBe("access-1");
});

test("a refusal by a server that names another authorization server -> moved, and the refresh token goes nowhere", async () => {
  const issuer = "https://old.example";
  const stored = { access_token: "old", refresh_token: "r", issuer, ...good };
  const at = await open({ stored, namesItself: true });
  expect(await outcome(at.tokens.afterRefusal(refused("old"), signal))).toBe("moved");
  expect(posts(at)).toBe(0);
  expect(at.held.record).toMatchObject({ refresh_token: "r" });
  // The answer holds for a minute, without another question.
  const asked = at.server.asked.length;
  expect(await outcome(at.tokens.afterRefusal(refused("old"), signal))).toBe("moved");
  expect(at.server.asked).toHaveLength(asked);
});

test("a refusal of an older token -> the stored one, without a renewal", async () => {
  const at = await open({ stored: { access_token: "b", refresh_token: "r", ...good } });
  expect(await at.tokens.afterRefusal(refused("a"), signal)).toBe("b");
  expect(posts(at)).toBe(0);
});

test("a refusal of the token that has just replaced another -> no further renewal", async () => {
  const at = await open({ stored: { access_token: "b", refresh_token: "r", ...good } });
  const repeated = at.tokens.afterRefusal(refused("b", { isRepeated: true }), signal);
  expect(await outcome(repeated)).toBe("fresh-token-refused");
  expect(posts(at)).toBe(0);
});

test("a fresh token was refused -> the next sign-in renews nothing, until somebody else has stored another token", async () => {
  const at = await open({ stored: { access_token: "a", refresh_token: "r", ...good } });
  const next = await at.tokens.afterRefusal(refused("a"), signal);
  expect(await outcome(at.tokens.afterRefusal(refused(String(next), { isRepeated: true }), signal))).toBe(
    "fresh-token-refused",
  );
  expect([await at.tokens.renew(signal), posts(at)]).toEqual([false, 1]);
  at.held.record = { ...(at.held.record as SignInRecord), access_token: "theirs" };
  expect([await at.tokens.renew(signal), posts(at)]).toEqual([true, 2]);
});

describe("403 for more scope", () => {
  const asks = (sent: string, scope = "write") =>
    refused(sent, { status: 403, challenge: { scheme: "Bearer", error: "insufficient_scope", scope } });
  const signIn = async (at: At, access_token: string): Promise<void> => {
    expect(at.tokens.checkStepUp()).toBeUndefined();
    at.held.record = { ...(at.held.record as SignInRecord), access_token };
    await at.tokens.signedIn();
  };
  const start = () => open({ stored: { access_token: "t0", refresh_token: "r", ...good } });

  test("-> the user must agree, and two sign-ins that do not give it are enough", async () => {
    const at = await start();
    for (const i of [0, 1]) {
      expect(await outcome(at.tokens.afterRefusal(asks(`t${i}`), signal))).toBe("scope-wanted");
      expect(await at.tokens.renew(signal)).toBe(false);
      await signIn(at, `t${i + 1}`);
    }
    expect(await outcome(at.tokens.afterRefusal(asks("t2"), signal))).toBe("scope-wanted");
    expect(() => at.tokens.checkStepUp()).toThrow(expect.objectContaining({ kind: "scope-loop" }));
    expect(posts(at)).toBe(0);
  });

  test("three sign-ins that give it, each until a later token has less -> none is refused", async () => {
    const at = await start();
    for (const i of [0, 1, 2, 3]) {
      at.held.record = { ...(at.held.record as SignInRecord), access_token: `less-${i}` };
      expect(await outcome(at.tokens.afterRefusal(asks(`less-${i}`), signal))).toBe("scope-wanted");
      await signIn(at, `more-${i}`);
    }
  });

  test("a late answer to the old token, and one that wants another scope -> not counted", async () => {
    const at = await start();
    await outcome(at.tokens.afterRefusal(asks("t0"), signal));
    await signIn(at, "t1");
    for (const late of [asks("t0"), asks("t0"), asks("t1", "admin"), asks("t1", "admin")])
      await outcome(at.tokens.afterRefusal(late, signal));
    for (const scope of ["write", "admin"]) {
      await outcome(at.tokens.afterRefusal(asks("t0", scope), signal));
      expect(at.tokens.checkStepUp()).toBeUndefined();
    }
  });

  test("the sign-in gives it -> the next one is an ordinary one, which may renew", async () => {
    const at = await start();
    await outcome(at.tokens.afterRefusal(asks("t0"), signal));
    await signIn(at, "t1");
    expect(at.tokens.challenge).toEqual({ scheme: "Bearer" });
    expect(await at.tokens.renew(signal)).toBe(true);
  });

  test("without a user -> the scope stays for the tokens that follow", async () => {
    const at = await open({ isMachine: true });
    expect(await outcome(at.tokens.afterRefusal(asks("t0"), signal))).toBe("scope-wanted");
    await at.tokens.signedIn();
    expect(at.tokens.challenge).toEqual({ scheme: "Bearer", scope: "write" });
  });
});

test("tokens of another program -> used as they are, and their path is named when they are refused", async () => {
  const at = await open({ given: { access_token: "g", token_type: "Bearer", refresh_token: "r" } });
  expect(await at.tokens.token(signal)).toBe("g");
  expect(at.tokens.status).toEqual({ state: "signed-in", renews: false });
  const problem = await at.tokens.afterRefusal(refused("g"), signal).catch((error: unknown) => error);
  expect(problem).toMatchObject({ kind: "expired", facts: { path: GIVEN } });
  expect(posts(at)).toBe(0);
});

test("hasOther -> only after someone has stored another token than the refused one", async () => {
  const at = await open({ stored: { access_token: "a", ...good } });
  await outcome(at.tokens.afterRefusal(refused("a"), signal));
  expect(await at.tokens.hasOther()).toBe(false);
  at.held.record = { ...(at.held.record as SignInRecord), access_token: "b" };
  expect(await at.tokens.hasOther()).toBe(true);
});

test("a caller that gives up -> the renewal goes on for the others", async () => {
  const answer = Promise.withResolvers<void>();
  const at = await open({
    stored: { access_token: "a", refresh_token: "r", ...over },
    endpoint: (asked, response, nth) => void answer.promise.then(() => issues(asked, response, nth)),
  });
  const impatient = new AbortController();
  const first = outcome(at.tokens.token(impatient.signal));
  const second = at.tokens.token(signal);
  impatient.abort();
  expect(await first).toMatchObject({ code: "cancelled" });
  answer.resolve();
  expect(await second).toBe("access-1");
  expect(posts(at)).toBe(1);
});

test("a caller without a token that gives up -> it waits no longer", async () => {
  const answer = Promise.withResolvers<void>();
  const at = await open({
    stored: { refresh_token: "r" },
    endpoint: (asked, response, nth) => void answer.promise.then(() => issues(asked, response, nth)),
  });
  const impatient = new AbortController();
  const token = outcome(at.tokens.token(impatient.signal));
  await expect.poll(() => at.renewing).toEqual([1]);
  impatient.abort();
  expect(await token).toMatchObject({ code: "cancelled" });
  answer.resolve();
  await at.tokens.close(60_000);
  expect(at.held.record?.access_token).toBe("access-1");
});

test("the user has signed out -> no status says that the user is signed in", async () => {
  const at = await open({ stored: { access_token: "a", ...good } });
  await at.tokens.token(signal);
  expect(at.tokens.status).toMatchObject({ state: "signed-in" });
  at.held.record = undefined;
  expect(await at.tokens.token(signal)).toBeUndefined();
  expect(at.tokens.status).toBeUndefined();
});

test("close in the middle of a renewal -> it waits until the new token is stored", async () => {
  const at = await open({ stored: { access_token: "a", refresh_token: "r", ...over } });
  const token = at.tokens.token(signal);
  await expect.poll(() => at.renewing).toEqual([1]);
  await at.tokens.close(60_000);
  expect(at.held.record?.access_token).toBe("access-1");
  expect(await token).toBe("access-1");
});

test("a scope for which the user has signed in twice -> not a third time, in any order of its words", () => {
  const stepUps = createStepUps();
  expect(stepUps.isAllowed("a b")).toBe(true);
  stepUps.count("a b");
  expect(stepUps.isAllowed("b a")).toBe(true);
  stepUps.count("b  a a");
  expect(stepUps.isAllowed("a b")).toBe(false);
  expect(stepUps.isAllowed("a b c")).toBe(true);
});

test("a server that names no scope -> counted, too", () => {
  const stepUps = createStepUps();
  stepUps.count(undefined);
  stepUps.count("");
  expect(stepUps.isAllowed(undefined)).toBe(false);
});

test("a server that asks for 1,000 scopes, one after the other -> the newest 100 are remembered", () => {
  const stepUps = createStepUps();
  for (let i = 0; i < 1_000; i++) {
    stepUps.count(`scope-${i}`);
    stepUps.count(`scope-${i}`);
  }
  expect(stepUps.isAllowed("scope-999")).toBe(false);
  expect(stepUps.isAllowed("scope-900")).toBe(false);
  expect(stepUps.isAllowed("scope-899")).toBe(true);
});

test.each([
  ["no known end", {}, true],
  ["an hour's life, 61 s left", { obtainedAt: NOW + 61_000 - HOUR, expiresAt: NOW + 61_000 }, true],
  ["an hour's life, 60 s left", { obtainedAt: NOW + 60_000 - HOUR, expiresAt: NOW + 60_000 }, false],
  ["300 ms of life, 31 ms left", { obtainedAt: NOW - 269, expiresAt: NOW + 31 }, true],
  ["300 ms of life, 30 ms left", { obtainedAt: NOW - 270, expiresAt: NOW + 30 }, false],
  ["an unknown start, 61 s left", { expiresAt: NOW + 61_000 }, true],
  ["an unknown start, 60 s left", { expiresAt: NOW + 60_000 }, false],
  ["an end before its start", { obtainedAt: NOW, expiresAt: NOW - 1 }, false],
  ["over", { obtainedAt: NOW - HOUR, expiresAt: NOW }, false],
])("a token with %s -> fresh: %s", (_what, token, fresh) => {
  expect(isFresh(token, NOW)).toBe(fresh);
});

test.each([
  ["no known end", {}, false],
  ["an end in 1 ms", { expiresAt: NOW + 1 }, false],
  ["an end now", { expiresAt: NOW }, true],
])("a token with %s -> expired: %s", (_what, token, expired) => {
  expect(isExpired(token, NOW)).toBe(expired);
});

describe("tokens that are bound to a key", () => {
  const dpopKey = createKey();
  const bound = {
    version: 2,
    dpopKey,
    access_token: "a",
    refresh_token: "r",
    token_type: "DPoP",
    ...good,
  } as const;
  const unbound = { access_token: "a", refresh_token: "r", ...good };
  const issuesBound: Handler = (_asked, response, nth) => {
    const answer = { access_token: `bound-${nth + 1}`, token_type: "DPoP", expires_in: 3_600 };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  };
  const DPOP = { scheme: "DPoP", dpop: "required" } as const;

  test("a good one -> no text, so that nothing sends it as a bearer token, and no text may show its key", async () => {
    const at = await open({ stored: bound });
    expect(await at.tokens.token(signal)).toEqual({ value: "a", send: expect.any(Function) });
    expect(at.tokens.status).toMatchObject({ state: "signed-in", isBound: true });
    expect([...at.secrets]).toEqual(["a", "r", dpopKey.d]);
  });

  test("a renewal -> the request has a proof, and the record keeps its key", async () => {
    const at = await open({ stored: { ...bound, ...over }, endpoint: issuesBound });
    expect(await at.tokens.token(signal)).toMatchObject({ value: "bound-1" });
    expect(at.server.asked.map(({ headers }) => typeof headers.dpop)).toEqual(["string"]);
    expect(at.held.record).toMatchObject({
      ...bound,
      access_token: "bound-1",
      expiresAt: expect.any(Number),
    });
  });

  test("the renewal is answered with a bearer token -> refused, and nothing is lost", async () => {
    const at = await open({ stored: { ...bound, ...over } });
    expect(await outcome(at.tokens.token(signal))).toBe("not-bound");
    expect(at.held.record).toMatchObject({ ...bound, ...over });
  });

  test("the authorization server ended the sign-in -> the key goes with the tokens", async () => {
    const at = await open({ stored: { ...bound, ...over }, endpoint: refuses(400, "invalid_grant") });
    expect(await outcome(at.tokens.token(signal))).toBe("refresh-refused");
    expect(at.held.record).toMatchObject({ version: 1, client: { id: "c" } });
    expect(at.held.record).not.toHaveProperty("dpopKey");
  });

  test("a refusal of the token -> another one after a renewal", async () => {
    const at = await open({ stored: bound, endpoint: issuesBound });
    const sent = await at.tokens.token(signal);
    const challenge = { ...DPOP, error: "invalid_token" };
    expect(await at.tokens.afterRefusal({ ...refused("a"), sent, challenge }, signal)).toMatchObject({
      value: "bound-1",
    });
  });

  test.each(["use_dpop_nonce", "invalid_dpop_proof"])(
    "a refusal by %s -> told, no renewal, and the sign-in lives",
    async (error) => {
      const at = await open({ stored: bound });
      const sent = await at.tokens.token(signal);
      const asks = { ...refused("a"), sent, challenge: { ...DPOP, error } };
      const problem = await at.tokens.afterRefusal(asks, signal).catch((thrown: unknown) => thrown);
      expect(problem).toMatchObject({ kind: "proof-refused", facts: { url: at.server.url, error } });
      expect([posts(at), at.tokens.status?.state]).toEqual([0, "signed-in"]);
    },
  );

  test("a bearer token, and the server wants one with a key -> no renewal helps, but a sign-in", async () => {
    const at = await open({ stored: unbound });
    expect(await at.tokens.token(signal)).toBe("a");
    const asks = refused("a", { challenge: { ...DPOP, error: "use_dpop_nonce" } });
    expect(await outcome(at.tokens.afterRefusal(asks, signal))).toBe("binding-wanted");
    expect(at.tokens.status).toEqual({ state: "needed" });
    expect([await at.tokens.renew(signal), await at.tokens.token(signal), posts(at)]).toEqual([
      false,
      undefined,
      0,
    ]);
    // The user signs in, in this process or another one.
    at.held.record = { ...(at.held.record as SignInRecord), ...bound, access_token: "b" };
    expect(await at.tokens.hasOther()).toBe(true);
    expect(await at.tokens.token(signal)).toMatchObject({ value: "b" });
  });

  test.each<[string, Options]>([
    ["a sign-in", { stored: unbound }],
    ["a refresh token alone", { stored: { refresh_token: "r" } }],
    ["tokens.json", { given: { access_token: "g", token_type: "Bearer" } }],
  ])("oauth.dpop is true, and %s is bound to no key -> it is not used", async (_name, stored) => {
    const at = await open({ ...stored, dpop: true });
    expect(await at.tokens.token(signal)).toBeUndefined();
    expect(await outcome(at.tokens.afterRefusal(refused(undefined), signal))).toBe("binding-wanted");
    expect(posts(at)).toBe(0);
  });

  test("oauth.dpop is true, and only a client is stored -> nobody has signed in", async () => {
    const at = await open({ stored: {}, dpop: true });
    expect(await outcome(at.tokens.afterRefusal(refused(undefined), signal))).toBe("not-signed-in");
  });

  test("oauth.dpop is false, and the sign-in is bound -> it stays bound", async () => {
    const at = await open({ stored: bound, dpop: false });
    expect(await at.tokens.token(signal)).toMatchObject({ value: "a" });
  });
});

/** The token endpoint issues `access-1`, `access-2` and so on, each for an hour. */
async function machineOf(challenge: AuthChallenge[] = []) {
  const server = await serve(({ http, path, headers }, response, nth) => {
    if (http !== "POST" && (challenge.length === 0 || !path.startsWith("/.well-known/oauth-authorization")))
      return response.writeHead(404).end();
    const issuer = `http://${headers.host}`;
    const metadata = {
      issuer,
      token_endpoint: `${issuer}/token`,
      dpop_signing_alg_values_supported: ["ES256"],
    };
    const token_type = headers.dpop === undefined ? "Bearer" : "DPoP";
    const tokens = { access_token: `access-${nth + 1}`, token_type, expires_in: 3_600 };
    const answer = http === "POST" ? tokens : metadata;
    return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  const client = createHttpClient({});
  onTestFinished(() => client.close());
  const url = new URL(server.url);
  const requests = createAuthRequests({ client, server: url, signal });
  const secrets: string[] = [];
  const shown: string[] = [];
  const clock = { nowMs: 1_000_000_000 };
  const plan = {
    grantType: "client_credentials",
    clientRegistration: "auto",
    clientId: "ci",
    clientSecret: "pw",
  } as const;
  const machine = createMachine(
    {
      server: "s",
      url,
      grant: async () => ({ plan, requests, onNote: () => undefined }),
      onSecret: (secret) => secrets.push(secret),
      nowMs: () => clock.nowMs,
    },
    () => challenge.at(-1),
    ({ access_token }) => shown.push(access_token),
  );
  return { machine, secrets, server, clock, shown };
}

test("a server that has not asked for a token -> none, and nothing is asked", async () => {
  const { machine, server } = await machineOf();
  expect(await machine.token(signal)).toBeUndefined();
  expect(server.log).toEqual([]);
});

test("ten refusals at once -> one token for all, which no text may show", async () => {
  const { machine, secrets } = await machineOf();
  const ten = Array.from({ length: 10 }, () => machine.renewed(undefined, signal));
  expect(new Set((await Promise.all(ten)).map(({ access_token }) => access_token))).toEqual(
    new Set(["access-1"]),
  );
  expect(secrets).toEqual(["access-1"]);
  expect(await machine.token(signal)).toMatchObject({ access_token: "access-1" });
});

test("the token is about to end -> the next request gets another one, before the server refuses it", async () => {
  const { machine, clock } = await machineOf();
  await machine.renewed(undefined, signal);
  // Less than a minute before its end.
  clock.nowMs = Date.now() + HOUR - 59_000;
  expect(await machine.token(signal)).toMatchObject({ access_token: "access-2" });
});

test("the token is refused -> another one, which no text may show either", async () => {
  const { machine, secrets, shown } = await machineOf();
  await machine.renewed(undefined, signal);
  expect(await machine.renewed("access-1", signal)).toMatchObject({ access_token: "access-2" });
  expect(shown).toEqual(["access-1", "access-2"]);
  expect(secrets).toEqual(["access-1", "access-2"]);
});

test("another token is wanted while the old one is good -> one for all, and the old one stays if there is none", async () => {
  const { machine, server } = await machineOf();
  await machine.renewed(undefined, signal);
  const three = await Promise.all([1, 2, 3].map(() => machine.another(signal)));
  expect(new Set(three.map(({ access_token }) => access_token))).toEqual(new Set(["access-2"]));
  await server.close();
  await expect(machine.another(signal)).rejects.toThrow(SignInProblem);
  expect(await machine.token(signal)).toMatchObject({ access_token: "access-2" });
});

test("the server asks for tokens that are bound -> bound, to one key also after a renewal", async () => {
  const { machine } = await machineOf([{ scheme: "DPoP", dpop: "required" }]);
  const first = await machine.renewed(undefined, signal);
  const second = await machine.renewed("access-1", signal);
  expect([first, second]).toMatchObject([{ access_token: "access-1" }, { access_token: "access-2" }]);
  expect(first.dpopKey).toBeDefined();
  expect(second.dpopKey).toBe(first.dpopKey);
});

test("the server asks for them only later -> the next token is bound", async () => {
  const challenge: AuthChallenge[] = [{ scheme: "Bearer" }];
  const { machine } = await machineOf(challenge);
  expect(await machine.renewed(undefined, signal)).not.toHaveProperty("dpopKey");
  challenge.push({ scheme: "DPoP", dpop: "required" });
  expect(await machine.renewed("access-1", signal)).toHaveProperty("dpopKey");
});
