/** Owns: which servers take a sign-in, and the sign-ins of a session by server. The web is a fake. */

import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import {
  type AuthServer,
  createSessionAuth,
  type RequestAuth,
  type SessionAuth,
  takesSignIn,
} from "../../../../../workers/connection/auth/auth.ts";
import { authorizedClient } from "../../../../../workers/connection/auth/authorized.ts";
import { parseEntry } from "../../../../../workers/connection/config/entry/definition.ts";
import { createHttpClient, type HttpResponse } from "../../../../../workers/connection/web/client.ts";
import { type Handler, serve, type TestServer } from "../../../../support/http-server.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { recordingLog } from "../../recording-log.ts";
import { SYSTEM_OF_TEST } from "./store/record-of-test.ts";
import {
  AUTHORIZATION,
  ORIGIN,
  PLAN,
  type Route,
  serverOf,
  storedSignIn,
  storeSignIn,
  type Web,
  webOf,
} from "./support.ts";

const URL_ENTRY = { url: "https://mcp.example.com/mcp" };

const ROWS: [what: string, entry: object, headers: Record<string, string>, takes: boolean][] = [
  ["only a url", URL_ENTRY, {}, true],
  ["another header", URL_ENTRY, { "x-key": "k" }, true],
  ["an Authorization header", URL_ENTRY, { authorization: "Bearer k" }, false],
  ["an Authorization header and auth oauth", { ...URL_ENTRY, auth: "oauth" }, { Authorization: "k" }, true],
  ["auth none", { ...URL_ENTRY, auth: "none" }, {}, false],
  ["auth false", { ...URL_ENTRY, auth: false }, {}, false],
  ["oauth false", { ...URL_ENTRY, oauth: false }, {}, false],
  ["auth bearer", { ...URL_ENTRY, auth: "bearer", bearerTokenEnv: "T" }, {}, false],
  ["oauth settings", { ...URL_ENTRY, oauth: { clientId: "c" } }, {}, true],
  ["a provider of Pi", { ...URL_ENTRY, auth: { provider: "radius" } }, {}, false],
  ["a local server", { command: "c" }, {}, false],
];

test.each(ROWS)("an entry with %s -> it takes a sign-in or not", (_what, entry, headers, takes) => {
  const { definition } = parseEntry("s", entry, { file: "/m.json", origin: "user" });
  if (!definition) throw new Error("the entry is wrong");
  expect(takesSignIn(definition, headers)).toBe(takes);
});

const { signal } = new AbortController();
const OVER = { refresh_token: "refresh-0", obtainedAt: 1_000, expiresAt: 2_000 };

interface At {
  auth: SessionAuth;
  agentDir: string;
  /** A client for each server that asked for one, oldest first. */
  webs: Web[];
  /** The ends of sign-ins and the statuses that changed, in their order. */
  told: string[];
  notes: string[];
}

async function open({
  routes = AUTHORIZATION,
  client,
  resolvePlan = async () => PLAN,
}: {
  routes?: Record<string, Route>;
  client?: Error;
  resolvePlan?: () => Promise<typeof PLAN>;
} = {}) {
  const at: Omit<At, "auth"> = { agentDir: await tempFolder(), webs: [], told: [], notes: [] };
  const auth = createSessionAuth({
    agentDir: at.agentDir,
    company: async () => undefined,
    askUser: async () => undefined,
    resolvePlan,
    createClient: async () => {
      if (client) throw client;
      const web = webOf(routes);
      at.webs.push(web);
      return web.client;
    },
    tokenStore: () => "file",
    system: () => SYSTEM_OF_TEST.system,
    warn: () => undefined,
    onRenewing: () => undefined,
    onStatus: (server) => at.told.push(`${server}: ${JSON.stringify(auth.status(server))}`),
    log: recordingLog().log,
    env: { BROWSER: "none" },
    platform: "linux",
    onEnd: ({ server, result }) => at.told.push(`${server} ends: ${result.ok || result.error.code}`),
  });
  onTestFinished(() => auth.close(0));
  const made: At = { ...at, auth };
  return made;
}

const begin = ({ auth }: At, server: AuthServer = serverOf()) =>
  auth.signIn(server, { agreed: {}, signedIn: async () => 3, signal });

/** Begins a sign-in, and answers the redirect URI at which it waits for the browser. */
async function waiting(at: At): Promise<string> {
  const step = await begin(at);
  if (step.step !== "open") throw new Error(`the sign-in does not wait: ${step.step}`);
  expect(at.auth.status("s")).toEqual({ state: "running" });
  return step.redirectUri;
}

const isOpen = (address: string): Promise<boolean> =>
  fetch(address).then(
    () => true,
    () => false,
  );

describe("of", () => {
  test("a connect of the same definition -> the same sign-in, which sends the new headers", async () => {
    const at = await open({
      routes: { [`${ORIGIN}/token`]: { access_token: "access-1", token_type: "Bearer" } },
    });
    await storeSignIn(at.agentDir, OVER);
    const first = at.auth.of(serverOf({ headers: { "x-key": "old" } }));
    expect(at.auth.of(serverOf({ headers: { "x-key": "new" } }))).toBe(first);
    await first?.token(signal);
    expect(at.webs[0]?.headers[0]).toMatchObject({ "x-key": "new" });
  });

  test.each([
    ["url", serverOf({ url: `${ORIGIN}/other` })],
    ["auth", serverOf({ entry: { auth: "oauth" } })],
    ["oauth", serverOf({ entry: { oauth: { scope: "read" } } })],
    ["certificate authorities", { ...serverOf(), ca: ["pem"] }],
  ])("another %s -> another sign-in", async (_what, changed) => {
    const { auth } = await open();
    expect(auth.of(changed)).not.toBe(auth.of(serverOf()));
  });

  test("a server that sends its own Authorization header -> none", async () => {
    const { auth } = await open();
    expect(auth.of(serverOf({ headers: { authorization: "Bearer k" } }))).toBeUndefined();
  });

  test("an edit in the middle of a renewal -> the renewal goes on, and its token is stored", async () => {
    const answer = Promise.withResolvers<object>();
    const asked = Promise.withResolvers<void>();
    const at = await open({
      routes: {
        [`${ORIGIN}/token`]: ({ signal: given }) => {
          asked.resolve();
          given.addEventListener("abort", () => answer.reject(given.reason), { once: true });
          return answer.promise;
        },
      },
    });
    await storeSignIn(at.agentDir, OVER);
    const token = at.auth.of(serverOf())?.token(signal);
    await asked.promise;
    at.auth.of(serverOf({ entry: { auth: "oauth" } }));
    // Long enough for a renewal that would be ended at once.
    await sleep(20);
    answer.resolve({ access_token: "access-1", token_type: "Bearer" });
    expect(await token).toBe("access-1");
    expect(await storedSignIn(at.agentDir)).toMatchObject({ access_token: "access-1" });
    await expect.poll(() => at.webs[0]?.isClosed).toBe(true);
  });
});

describe("signIn", () => {
  const ENTRIES: [entry: object, headers: Record<string, string>, message: string][] = [
    [{ command: "c", url: undefined }, {}, "s is a local program and needs no sign-in."],
    [{ oauth: false }, {}, "s takes no sign-in, as mcp.json says."],
    [{ auth: "none" }, {}, "s takes no sign-in, as mcp.json says."],
    [{}, { Authorization: "Bearer k" }, "s sends the Authorization header of mcp.json."],
  ];
  test.each(ENTRIES)("an entry with %j and the headers %j -> %s", async (entry, headers, message) => {
    const at = await open();
    await expect(begin(at, serverOf({ entry, headers }))).rejects.toMatchObject({
      code: "bad_config",
      message,
    });
    expect([at.told, at.webs]).toEqual([[], []]);
  });

  test("it waits for the browser -> the status says so, until it is cancelled", async () => {
    const at = await open();
    const step = await begin(at);
    expect(at.told).toEqual(['s: {"state":"running"}']);
    at.auth.cancel("id" in step ? step.id : "");
    await turn();
    expect(at.told.slice(1)).toEqual(["s ends: cancelled", "s: undefined"]);
  });

  test("it fails -> nothing is running, and the status is told", async () => {
    const at = await open({ routes: {} });
    await expect(begin(at)).rejects.toMatchObject({ code: "needs_auth" });
    expect(at.told).toEqual(["s: undefined"]);
  });

  test("a text that is pasted into it -> what is wrong with the text", async () => {
    const at = await open();
    const step = await begin(at);
    expect(await at.auth.paste("id" in step ? step.id : "", "?")).toMatch(/^There is no code in that\./);
  });

  test("a text or a cancellation without any sign-in -> the text is refused, and nothing happens", async () => {
    const at = await open();
    expect(await at.auth.paste("1", "code")).toBe("This sign-in has ended.");
    at.auth.cancel("1");
    expect(at.told).toEqual([]);
  });
});

describe("the end of a sign-in", () => {
  test("an edit of another server -> it goes on; of its own -> it ends, and nothing listens", async () => {
    const at = await open();
    const redirectUri = await waiting(at);
    at.auth.abandon(["other"]);
    expect(at.auth.status("s")).toEqual({ state: "running" });
    at.auth.abandon(["s"]);
    await turn();
    expect(at.told.slice(1)).toEqual(["s ends: cancelled", "s: undefined"]);
    expect(await isOpen(redirectUri)).toBe(false);
  });

  test.each<[string, (at: At) => unknown]>([
    ["an edit of its own, or it is switched off", (at) => at.auth.abandon(["s"])],
    ["the user signs out", (at) => at.auth.signOut(serverOf(), signal)],
  ])("%s before the first step is known -> it ends, and no page opens", async (_what, end) => {
    const asked = Promise.withResolvers<void>();
    const plan = Promise.withResolvers<typeof PLAN>();
    const at = await open({
      resolvePlan: () => {
        asked.resolve();
        return plan.promise;
      },
    });
    const step = begin(at).then(
      ({ step }) => step,
      (error: ThreadsError) => error.code,
    );
    await asked.promise;
    at.auth.abandon(["other"]);
    await end(at);
    expect(await step).toBe("cancelled");
    plan.resolve(PLAN);
    await turn();
    expect(at.auth.status("s")).toBeUndefined();
    // Another one begins anew.
    expect(await begin(at)).toMatchObject({ step: "open" });
  });

  test("the user signs out -> it ends, so that no later token signs the user in again", async () => {
    const at = await open();
    const redirectUri = await waiting(at);
    expect(await at.auth.signOut(serverOf(), signal)).toBe("s is not signed in.");
    expect(at.told).toContain("s ends: cancelled");
    expect(await isOpen(redirectUri)).toBe(false);
  });

  test("close -> every sign-in ends, nothing listens, and the clients are closed", async () => {
    const at = await open();
    const redirectUri = await waiting(at);
    await at.auth.close(0);
    await turn();
    expect(at.told).toContain("s ends: cancelled");
    expect(await isOpen(redirectUri)).toBe(false);
    expect(at.webs.map(({ isClosed }) => isClosed)).toEqual([true]);
  });

  test("close in the middle of a renewal -> it settles when the new token is stored", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<object>();
    const at = await open({
      routes: {
        [`${ORIGIN}/token`]: () => {
          asked.resolve();
          return answer.promise;
        },
      },
    });
    await storeSignIn(at.agentDir, OVER);
    const token = at.auth.of(serverOf())?.token(signal);
    await asked.promise;
    let isClosed = false;
    const closed = at.auth.close(60_000).then(() => {
      isClosed = true;
    });
    await turn();
    expect(isClosed).toBe(false);
    answer.resolve({ access_token: "access-1", token_type: "Bearer" });
    await closed;
    expect(await storedSignIn(at.agentDir)).toMatchObject({ access_token: "access-1" });
    expect(await token).toBe("access-1");
  });

  test("a server whose client could not be made is edited -> no rejection is unhandled", async () => {
    const at = await open({ client: new Error("no certificate") });
    await expect(begin(at)).rejects.toThrow("no certificate");
    const others = process.listeners("unhandledRejection");
    const found: unknown[] = [];
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", (reason) => found.push(reason));
    onTestFinished(() => {
      process.removeAllListeners("unhandledRejection");
      for (const listener of others) process.on("unhandledRejection", listener);
    });
    at.auth.of(serverOf({ entry: { auth: "oauth" } }));
    // The old sign-in ends before anybody waits for its end.
    await turn();
    await at.auth.close(0);
    expect(found).toEqual([]);
  });
});

type Refusal = Parameters<RequestAuth["afterRefusal"]>[0];

interface Asking {
  first: string | undefined;
  /** What each refusal is answered with, in turn. */
  next?: (string | undefined | Error)[];
  method?: "GET" | "POST" | "DELETE";
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const never = new AbortController().signal;

/** Asks once and answers what the client got, and the refusals that it reported. */
async function ask(
  server: TestServer,
  { first, next = [], method = "POST", headers = {}, signal = never }: Asking,
): Promise<{ response: HttpResponse | Error; refusals: Refusal[] }> {
  const refusals: Refusal[] = [];
  const left = [...next];
  const auth: RequestAuth = {
    token: async () => first,
    afterRefusal: async (refusal) => {
      refusals.push(refusal);
      const answer = left.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const client = authorizedClient(createHttpClient({}), auth);
  const body = method === "POST" ? { body: '{"method":"ping"}' } : {};
  const response = await client
    .request({ method, url: new URL(server.url), headers, signal, ...body })
    .catch((error: Error) => error);
  if (!(response instanceof Error)) response.body.destroy();
  client.close();
  return { response, refusals };
}

const statusOf = (response: HttpResponse | Error): number | string =>
  response instanceof Error ? response.message : response.status;

const sentTo = (server: TestServer): (string | undefined)[] =>
  server.asked.map(({ headers }) => headers.authorization);

/** Accepts one token only. */
const accepts =
  (token: string, challenge = "Bearer"): Handler =>
  ({ headers }, response) => {
    const isKnown = headers.authorization === `Bearer ${token}`;
    response.writeHead(isKnown ? 200 : 401, isKnown ? {} : { "www-authenticate": challenge }).end();
  };

test("a token -> the request carries it in place of a configured header", async () => {
  const server = await serve(accepts("new"));
  const { response } = await ask(server, {
    first: "new",
    headers: { authorization: "Basic abc", "x-team": "a" },
  });
  expect(statusOf(response)).toBe(200);
  expect(sentTo(server)).toEqual(["Bearer new"]);
  expect(server.asked[0]?.headers["x-team"]).toBe("a");
});

test("no token and no refusal -> the request goes out as configured", async () => {
  const server = await serve((_asked, response) => response.writeHead(200).end());
  await ask(server, { first: undefined, headers: { authorization: "Basic abc" } });
  expect(sentTo(server)).toEqual(["Basic abc"]);
});

test("401 -> the same request is sent once more with the other token", async () => {
  const server = await serve(accepts("new", 'Bearer scope="a b", resource_metadata="https://x/y"'));
  const { response, refusals } = await ask(server, { first: "old", next: ["new"] });
  expect(statusOf(response)).toBe(200);
  expect(sentTo(server)).toEqual(["Bearer old", "Bearer new"]);
  expect(server.asked.map(({ message }) => message.method)).toEqual(["ping", "ping"]);
  expect(refusals).toEqual([
    {
      status: 401,
      sent: "old",
      address: "127.0.0.1",
      isRepeated: false,
      challenge: { scheme: "Bearer", scope: "a b", resourceMetadata: "https://x/y" },
    },
  ]);
});

test("401 that no token cures -> the server's answer stands", async () => {
  const server = await serve(accepts("new"));
  const { response } = await ask(server, { first: undefined, next: [undefined] });
  expect(statusOf(response)).toBe(401);
  expect(server.asked).toHaveLength(1);
});

test("a server that refuses every token -> three requests at most", async () => {
  const server = await serve(accepts("none"));
  const { response, refusals } = await ask(server, { first: "a", next: ["b", "c", "d", "e"] });
  expect(statusOf(response)).toBe(401);
  expect(sentTo(server)).toEqual(["Bearer a", "Bearer b", "Bearer c"]);
  expect(refusals).toHaveLength(2);
});

test("a refusal that is explained -> the request fails with the explanation", async () => {
  const server = await serve(accepts("new"));
  const lost = new ThreadsError("needs_auth", "s: it needs a sign-in.");
  const { response } = await ask(server, { first: "old", next: [lost] });
  expect(response).toBe(lost);
});

test.each([
  ['Bearer error="insufficient_scope", scope="write"', 1],
  ['Bearer error="invalid_token"', 0],
  ["", 0],
] as const)("403 with %s -> %i refusals", async (challenge, count) => {
  const server = await serve((_asked, response) =>
    response.writeHead(403, challenge === "" ? {} : { "www-authenticate": challenge }).end(),
  );
  const { response, refusals } = await ask(server, { first: "a" });
  expect(statusOf(response)).toBe(403);
  expect(refusals).toHaveLength(count);
});

test("DELETE that is refused -> it is not repeated", async () => {
  const server = await serve(accepts("new"));
  const { response, refusals } = await ask(server, { first: "old", next: ["new"], method: "DELETE" });
  expect(statusOf(response)).toBe(401);
  expect(refusals).toEqual([]);
});

test("DELETE -> it carries the last token that was sent, and nobody is asked for one, which could begin a renewal", async () => {
  const server = await serve((_asked, response) => response.writeHead(200).end());
  const tokens = ["a", "b"];
  const auth: RequestAuth = { token: async () => tokens.shift(), afterRefusal: async () => undefined };
  const client = authorizedClient(createHttpClient({}), auth);
  for (const method of ["GET", "DELETE"] as const) {
    const { body } = await client.request({ method, url: new URL(server.url), headers: {}, signal: never });
    body.destroy();
  }
  client.close();
  expect(sentTo(server)).toEqual(["Bearer a", "Bearer a"]);
  expect(tokens).toEqual(["b"]);
});

test("a request that is given up while it waits for a token -> nothing is sent", async () => {
  const server = await serve((_asked, response) => response.writeHead(200).end());
  const given = new AbortController();
  given.abort();
  const { response } = await ask(server, { first: "a", signal: given.signal });
  expect(response).toBeInstanceOf(Error);
  expect(server.asked).toEqual([]);
});

test("a body of a refused answer that never ends -> the repetition does not wait for it", async () => {
  const server = await serve(({ headers }, response) => {
    if (headers.authorization === "Bearer new") response.writeHead(200).end();
    else response.writeHead(401, { "www-authenticate": "Bearer" }).write("…");
  });
  const { response } = await ask(server, { first: "old", next: ["new"] });
  expect(statusOf(response)).toBe(200);
});
