/** Owns: the token of a provider of Pi: when Pi is asked for it, where it goes, and what its lack means. */
import { expect, test } from "vitest";
import type { ProviderAnswer } from "../../../../../src/shared/protocol/calls.ts";
import type { AskUser } from "../../../../../workers/connection/asks/asks.ts";
import { createSessionAuth } from "../../../../../workers/connection/auth/auth.ts";
import { authorizedClient } from "../../../../../workers/connection/auth/authorized.ts";
import { createHttpClient } from "../../../../../workers/connection/web/client.ts";
import { serve } from "../../../../support/http-server.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { recordingLog } from "../../recording-log.ts";
import { SYSTEM_OF_TEST } from "./store/record-of-test.ts";
import { PLAN, serverOf } from "./support.ts";

const { signal } = new AbortController();

/** A session whose Pi gives these answers in turn, the last one for ever. */
async function sessionOf(answers: (ProviderAnswer | undefined)[], env: Record<string, string> = {}) {
  const asked: unknown[] = [];
  const askUser: AskUser = async (question) => {
    asked.push(question);
    return answers[Math.min(asked.length, answers.length) - 1] as never;
  };
  const auth = createSessionAuth({
    agentDir: await tempFolder(),
    askUser,
    company: async () => undefined,
    tokenStore: () => "file",
    system: () => SYSTEM_OF_TEST.system,
    resolvePlan: async () => PLAN,
    createClient: async () => createHttpClient({}),
    warn: () => undefined,
    onRenewing: () => undefined,
    onStatus: () => undefined,
    log: recordingLog().log,
    env,
    platform: "linux",
    onEnd: () => undefined,
  });
  return { auth, asked };
}

/** Sends requests to a server that takes only this token. */
async function send(token: string, count: number, ...answers: (ProviderAnswer | undefined)[]) {
  const { auth, asked } = await sessionOf(answers);
  const secrets = new Set<string>();
  const web = await serve(({ headers }, response) => {
    response.writeHead(headers.authorization === `Bearer ${token}` ? 200 : 401).end();
  });
  const server = serverOf({ entry: { auth: { provider: "radius" } }, url: web.url, secrets });
  const requestAuth = auth.of(server);
  if (!requestAuth) throw new Error("no token is asked for");
  const client = authorizedClient(createHttpClient({}), requestAuth);
  const outcomes: unknown[] = [];
  for (let i = 0; i < count; i++) {
    const sent = client.request({ method: "GET", url: new URL(web.url), headers: {}, signal });
    outcomes.push(
      await sent.then(
        ({ status }) => status,
        (error: unknown) => error,
      ),
    );
  }
  client.close();
  const sent = web.asked.map(({ headers }) => headers.authorization);
  return { auth, asked, outcomes, sent, secrets };
}

test("Pi is asked at each request, and each token is a secret", async () => {
  const { asked, outcomes, sent, secrets } = await send("token-2", 2, { token: "token-2" });
  expect(outcomes).toEqual([200, 200]);
  expect(sent).toEqual(["Bearer token-2", "Bearer token-2"]);
  expect(asked).toEqual([
    { about: "provider", provider: "radius" },
    { about: "provider", provider: "radius" },
  ]);
  expect([...secrets]).toEqual(["token-2"]);
});

test.each([
  ["http and a proxy", "http://127.0.0.1:1/mcp", { http_proxy: "http://p:1" }, "not-https"],
  ["http, a proxy and NO_PROXY", "http://127.0.0.1:1/mcp", { http_proxy: "http://p:1", no_proxy: "*" }, "t"],
  ["https and a proxy", "https://mcp.test/mcp", { http_proxy: "http://p:1", https_proxy: "http://p:1" }, "t"],
])("%s -> the token or the problem: $3", async (_title, url, env, expected) => {
  const { auth } = await sessionOf([{ token: "t" }], env);
  const token = auth.of(serverOf({ entry: { auth: { provider: "radius" } }, url }))?.token(signal);
  const outcome = await token?.catch(({ data }: { data?: { reason?: string } }) => data?.reason);
  expect(outcome).toBe(expected);
});

test("a token that Pi has renewed since it was sent -> the request is repeated once with it", async () => {
  const { outcomes, sent } = await send("new", 1, { token: "old" }, { token: "new" });
  expect(outcomes).toEqual([200]);
  expect(sent).toEqual(["Bearer old", "Bearer new"]);
});

const REFUSED = {
  code: "needs_auth",
  message: "s: it refuses the token of the provider radius.",
  remedy: expect.stringContaining("Run /login radius in Pi."),
};

test("the same token again -> it is sent once, and the error names /login", async () => {
  const { outcomes, sent } = await send("other", 1, { token: "mine" });
  expect(outcomes).toMatchObject([REFUSED]);
  expect(sent).toEqual(["Bearer mine"]);
});

test("a token that lacks rights for a request -> the error names them, and /login", async () => {
  const challenge = { scheme: "Bearer", error: "insufficient_scope", scope: "write" };
  const { auth } = await send("mine", 0, { token: "mine" }, { token: "mine" });
  const refused = { status: 403, challenge, sent: "mine", isRepeated: false, address: undefined };
  await expect(
    auth.of(serverOf({ entry: { auth: { provider: "radius" } } }))?.afterRefusal(refused, signal),
  ).rejects.toMatchObject({
    code: "needs_auth",
    message: "s: it wants more rights: write.",
    remedy: "Run /login radius in Pi.",
    data: { reason: "scope-wanted", scope: "write" },
  });
});

test("a renewed token that is refused, too -> no third request", async () => {
  const { outcomes, sent } = await send(
    "other",
    1,
    { token: "tok-1" },
    { token: "tok-2" },
    { token: "tok-3" },
  );
  expect(outcomes).toMatchObject([REFUSED]);
  expect(sent).toEqual(["Bearer tok-1", "Bearer tok-2"]);
});

test.each<[string, ProviderAnswer | undefined, { code?: string; message?: RegExp; remedy?: string }]>([
  [
    "is not known",
    { problem: "unknown" },
    { code: "bad_config", message: /^s: Pi knows no provider radius\.$/ },
  ],
  [
    "nobody has signed in to",
    { problem: "signed-out" },
    { code: "needs_auth", remedy: "Run /login radius in Pi." },
  ],
  ["cannot be renewed", { problem: "failed" }, { code: "needs_auth", message: /could not give the token/ }],
  [
    "is asked for in a shell",
    { problem: "needs-pi" },
    { code: "needs_auth", message: /which only Pi can give/ },
  ],
  ["Pi answers nothing for", undefined, { code: "needs_auth", message: /could not give the token/ }],
  ["has a token with a line break", { token: "a\r\nx-evil: 1" }, { message: /could not give the token/ }],
  ["has an endless token", { token: "a".repeat(20_000) }, { message: /could not give the token/ }],
])(
  "a provider that %s -> nothing is sent, and the error says why",
  async (_what, answer, { message, ...rest }) => {
    const { outcomes, sent, secrets } = await send("x", 1, answer);
    expect(sent).toEqual([]);
    expect([...secrets]).toEqual([]);
    const [error] = outcomes;
    expect(error).toMatchObject(rest);
    if (message) expect((error as Error).message).toMatch(message);
  },
);

test("a server that refused a token -> another token of Pi counts as a new sign-in, the same one does not", async () => {
  const { auth } = await send("x", 1, { token: "a" }, { token: "a" }, { token: "a" }, { token: "b" });
  expect(await auth.hasOther("s")).toBe(false);
  expect(await auth.hasOther("s")).toBe(true);
});

test("/mcp auth of such a server -> the way to sign in is Pi's own", async () => {
  const { auth } = await sessionOf([{ token: "a" }]);
  const server = serverOf({ entry: { auth: { provider: "radius" } } });
  const wish = { agreed: {}, signedIn: async () => 0, signal };
  await expect(auth.signIn(server, wish)).rejects.toMatchObject({
    code: "bad_config",
    message: "s sends the token of the provider radius, to which you sign in with Pi itself.",
    remedy: "Run /login radius or /logout radius in Pi.",
  });
});
