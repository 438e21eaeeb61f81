/** Owns: the sign-in of one server, over a real store in a temp folder. The web is a fake. */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type AuthServer, ServerAuth } from "../../../../../workers/connection/auth/auth.ts";
import type { SignInTarget } from "../../../../../workers/connection/auth/sign-in/prepare.ts";
import type { SignIns } from "../../../../../workers/connection/auth/sign-in/sign-in.ts";
import type { OAuthPlan } from "../../../../../workers/connection/config/entry/oauth-keys.ts";
import { nodeFiles } from "../../../../../workers/shared/files/file-system.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { SYSTEM_OF_TEST } from "./store/record-of-test.ts";
import {
  giveTokens,
  ORIGIN,
  PLAN,
  type Route,
  serverOf,
  storedSignIn,
  storeSignIn,
  type Web,
  webOf,
} from "./support.ts";

const { signal } = new AbortController();
const OVER = { refresh_token: "refresh-0", obtainedAt: 1_000, expiresAt: 2_000 };
const REVOCABLE = { refresh_token: "refresh-0", revocationEndpoint: `${ORIGIN}/revoke` };
const REFUSED = { status: 401, challenge: undefined, sent: undefined, isRepeated: false };

/** The server is its own authorization server. */
const OFFER = {
  [`${ORIGIN}/.well-known/oauth-authorization-server`]: {
    issuer: ORIGIN,
    authorization_endpoint: `${ORIGIN}/authorize`,
    token_endpoint: `${ORIGIN}/token`,
  },
};

interface At {
  auth: ServerAuth;
  agentDir: string;
  web: Web;
  plans: number;
  renewing: number[];
}

interface Options {
  /** The addresses of every host name. */
  addresses?: string[];
  server?: AuthServer;
  routes?: Record<string, Route>;
  plan?: () => Promise<OAuthPlan>;
  client?: () => Promise<never>;
}

async function open({
  server = serverOf(),
  routes = {},
  plan = async () => PLAN,
  client,
  addresses = [],
}: Options = {}): Promise<At> {
  const agentDir = await tempFolder();
  const web = webOf({ ...OFFER, ...routes });
  const at: Omit<At, "auth"> = { agentDir, web, plans: 0, renewing: [] };
  const auth = new ServerAuth(server, {
    agentDir,
    company: async () => undefined,
    resolvePlan: () => {
      made.plans++;
      return plan();
    },
    resolve: async () => addresses.map((address) => ({ address, family: 4 })),
    createClient: client ?? (async () => web.client),
    tokenStore: () => "file",
    system: () => SYSTEM_OF_TEST.system,
    warn: () => undefined,
    onRenewing: (by) => at.renewing.push(by),
    onStatus: () => undefined,
  });
  const made = Object.assign(at, { auth });
  onTestFinished(() => auth.close(0));
  return made;
}

/** The sign-ins of a session that only note what they were asked for. */
function recordingSignIns() {
  const begun: { target: SignInTarget; agreed: object; signal: AbortSignal | undefined }[] = [];
  const signIns: Pick<SignIns, "begin"> = {
    begin: async (target, agreed, asked) => {
      begun.push({ target, agreed, signal: asked });
      return { step: "renewed", id: "1" };
    },
  };
  return { signIns: signIns as SignIns, begun };
}

const wish = (signedIn: () => Promise<number | undefined> = async () => 3) => ({
  agreed: { fromPi: false },
  signedIn,
  signal,
});

describe("token", () => {
  test("nobody has ever signed in -> none, and nothing is resolved or asked", async () => {
    const at = await open();
    expect(await at.auth.token(signal)).toBeUndefined();
    expect([at.plans, at.web.log, at.auth.status]).toEqual([0, [], undefined]);
    await storeSignIn(at.agentDir);
    // Nothing is loaded that could look at it.
    expect(await at.auth.hasOther()).toBe(false);
  });

  test("a stored sign-in -> its token, which no text may show, and nothing is resolved or asked", async () => {
    const secrets = new Set<string>();
    const at = await open({ server: serverOf({ secrets }) });
    await storeSignIn(at.agentDir);
    expect(await at.auth.token(signal)).toBe("access-0");
    expect([...secrets]).toEqual(["access-0"]);
    expect([at.plans, at.web.log]).toEqual([0, []]);
  });

  test("a token that is over -> it is renewed with the configured headers, and stored", async () => {
    const secrets = new Set<string>();
    const at = await open({
      server: serverOf({
        secrets,
        headers: { "x-gateway": "g" },
        entry: { oauth: { clientSecret: "plain-secret" } },
      }),
      plan: async () => ({ ...PLAN, clientSecret: "plain-secret" }),
      routes: { [`${ORIGIN}/token`]: { access_token: "access-1", token_type: "Bearer" } },
    });
    await storeSignIn(at.agentDir, OVER);
    expect(await at.auth.token(signal)).toBe("access-1");
    expect(await storedSignIn(at.agentDir)).toMatchObject({ access_token: "access-1" });
    expect(at.web.headers[0]).toMatchObject({ "x-gateway": "g" });
    expect(at.renewing).toEqual([1, -1]);
    expect([...secrets]).toEqual(expect.arrayContaining(["access-1", "plain-secret"]));
  });

  test.each([
    ["user", "given-token"],
    ["project-file", undefined],
    ["project-pi", undefined],
  ] as const)(
    "tokens of another program, and a file of origin %s names the server -> %s",
    async (origin, token) => {
      const at = await open({ server: serverOf({ origin }) });
      await giveTokens(at.agentDir, { access_token: "given-token" });
      expect(await at.auth.token(signal)).toBe(token);
    },
  );

  test("a renewal that fails -> the failure in plain words, without the kind of the problem", async () => {
    const at = await open({ routes: {} });
    await storeSignIn(at.agentDir, OVER);
    await expect(at.auth.token(signal)).rejects.toMatchObject({
      name: "ThreadsError",
      code: "connect_failed",
      message: expect.stringContaining(`s: ${ORIGIN}/token gave an answer that cannot be used`),
    });
  });
});

describe("afterRefusal", () => {
  test("401 without a challenge -> the server needs a sign-in", async () => {
    const at = await open();
    await expect(at.auth.afterRefusal(REFUSED, signal)).rejects.toMatchObject({
      code: "needs_auth",
      message: "s: it needs a sign-in.",
      data: { reason: "not-signed-in" },
    });
    expect(at.auth.status).toEqual({ state: "needed" });
    expect(at.auth.isChallenged).toBe(false);
  });

  test("a challenge for a token -> it is kept for the sign-in", async () => {
    const at = await open();
    const challenge = { scheme: "Bearer", scope: "read" };
    await at.auth.afterRefusal({ ...REFUSED, challenge }, signal).catch(() => undefined);
    expect(at.auth.isChallenged).toBe(true);
  });

  test("a challenge for a password -> the server's answer stands, and nothing is loaded", async () => {
    const at = await open();
    expect(
      await at.auth.afterRefusal({ ...REFUSED, challenge: { scheme: "Basic" } }, signal),
    ).toBeUndefined();
    expect(at.auth.status).toBeUndefined();
  });
});

describe("signIn", () => {
  test("it hands on the server, what the user agreed to, and the signal; the end of the sign-in connects", async () => {
    const secrets = new Set<string>();
    const plan = { ...PLAN, clientId: "c", clientSecret: "plain-secret" };
    const at = await open({ server: serverOf({ secrets }), plan: async () => plan });
    const { signIns, begun } = recordingSignIns();
    const challenge = { scheme: "Bearer", error: "insufficient_scope", scope: "write" };
    await at.auth.afterRefusal({ ...REFUSED, challenge }, signal).catch(() => undefined);
    await at.auth.signIn(signIns, wish());
    // No text may show the secret of the configuration.
    expect([...secrets]).toContain("plain-secret");
    const [first] = begun;
    expect(first).toMatchObject({
      agreed: { fromPi: false },
      target: { server: "s", url: new URL(`${ORIGIN}/mcp`), challenge, plan },
    });
    expect(first?.signal).toBe(signal);
    expect(await first?.target.signedIn()).toBe(3);
  });

  test("two sign-ins for one scope that did not help -> the third fails, and nothing is resolved", async () => {
    const at = await open();
    const { signIns, begun } = recordingSignIns();
    const challenge = { scheme: "Bearer", error: "insufficient_scope", scope: "write" };
    const refuse = (sent: string) =>
      at.auth.afterRefusal({ ...REFUSED, status: 403, challenge, sent }, signal).catch(() => undefined);
    await refuse("access-0");
    for (const nth of [0, 1]) {
      await at.auth.signIn(signIns, wish());
      await storeSignIn(at.agentDir, { access_token: `access-of-sign-in-${"x".repeat(nth)}` });
      await begun[nth]?.target.signedIn();
      await refuse(`access-of-sign-in-${"x".repeat(nth)}`);
    }
    await expect(at.auth.signIn(signIns, wish())).rejects.toMatchObject({ data: { reason: "scope-loop" } });
    expect(at.plans).toBe(2);
  });

  const INSIDE = "https://10.0.0.1/metadata";
  test.each([
    ["user", "GET https://10.0.0.1/metadata"],
    ["project-file", "private-address"],
    ["project-pi", "private-address"],
  ] as const)("a private address in a file of origin %s -> %s", async (origin, expected) => {
    // A public server that is its own address, so that no name is looked up.
    const at = await open({
      server: serverOf({ url: "https://203.0.113.5/mcp", origin }),
      plan: async () => ({ ...PLAN, authServerMetadataUrl: INSIDE }),
    });
    const { signIns, begun } = recordingSignIns();
    await at.auth.signIn(signIns, wish());
    const outcome = await begun[0]?.target.requests.fetch(INSIDE, {}).then(
      () => at.web.log.join(),
      (error: { kind: string }) => error.kind,
    );
    expect(outcome).toBe(expected);
  });
});

test.each([
  ["a private address", "10.0.0.7", "404"],
  ["a public address, and its name leads to a private one now", "93.184.216.34", "private-address"],
  ["a proxy", undefined, "private-address"],
])(
  "a server that refused a request from %s, %s -> a private address that it names: %s",
  async (_from, address, expected) => {
    const at = await open({
      server: serverOf({ url: "https://mcp.corp.example/mcp" }),
      addresses: ["10.0.0.7"],
    });
    await at.auth
      .afterRefusal({ ...REFUSED, status: 403, sent: "a", address }, signal)
      .catch(() => undefined);
    const { signIns, begun } = recordingSignIns();
    await at.auth.signIn(signIns, wish());
    const asking = begun[0]?.target.requests.fetch("http://127.0.0.1:6379/x", {});
    const outcome = await asking?.then(
      ({ status }) => String(status),
      (error: { kind: string }) => error.kind,
    );
    expect(outcome).toBe(expected);
  },
);

describe("signOut", () => {
  const revoked = (at: At): unknown[] =>
    at.web.bodies.map((body) => Object.fromEntries(new URLSearchParams(body)).token);

  test("nobody is signed in -> it says so", async () => {
    expect(await (await open()).auth.signOut(signal)).toBe("s is not signed in.");
  });

  test("tokens of another program -> it names the file, which stays", async () => {
    const at = await open();
    const path = await giveTokens(at.agentDir, { access_token: "given-token" });
    expect(await at.auth.signOut(signal)).toBe(
      `s uses the tokens in ${path}, which another program wrote: remove that file to sign out.`,
    );
    expect(await at.auth.token(signal)).toBe("given-token");
  });

  test("a sign-in -> its tokens are revoked, the refresh token first, and the file is gone", async () => {
    const at = await open({ routes: { [`${ORIGIN}/revoke`]: {} } });
    await storeSignIn(at.agentDir, REVOCABLE);
    expect(await at.auth.signOut(signal)).toBe("s is signed out.");
    expect(revoked(at)).toEqual(["refresh-0", "access-0"]);
    expect(await storedSignIn(at.agentDir)).toBeUndefined();
  });

  test("the authorization server does not answer -> the user is signed out here, and learns that", async () => {
    const at = await open();
    await storeSignIn(at.agentDir, REVOCABLE);
    const text = await at.auth.signOut(signal);
    expect(text).toMatch(
      /^s is signed out here\. Its tokens could not be revoked: s: http:\/\/127\.0\.0\.1:9\/revoke /,
    );
    expect(await storedSignIn(at.agentDir)).toBeUndefined();
  });

  test("a configuration that cannot be resolved -> the user is signed out here, and learns that", async () => {
    const at = await open({ plan: () => Promise.reject(new Error("s: $SECRET is not set.")) });
    await storeSignIn(at.agentDir, REVOCABLE);
    expect(await at.auth.signOut(signal)).toBe(
      "s is signed out here. Its tokens could not be revoked: s: $SECRET is not set.",
    );
    expect(await storedSignIn(at.agentDir)).toBeUndefined();
  });
});

describe("close", () => {
  test("a renewal that is out -> it is waited for, and its token is stored", async () => {
    const answer = Promise.withResolvers<object>();
    const asked = Promise.withResolvers<void>();
    const at = await open({
      routes: {
        [`${ORIGIN}/token`]: () => {
          asked.resolve();
          return answer.promise;
        },
      },
    });
    await storeSignIn(at.agentDir, OVER);
    const token = at.auth.token(signal);
    await asked.promise;
    const closed = at.auth.close(60_000);
    answer.resolve({ access_token: "access-1", token_type: "Bearer" });
    await closed;
    expect(await storedSignIn(at.agentDir)).toMatchObject({ access_token: "access-1" });
    expect(await token).toBe("access-1");
    expect(at.web.isClosed).toBe(true);
  });

  test("a renewal that no disk took -> it is stored if the disk has room now", async () => {
    const at = await open({
      routes: {
        [`${ORIGIN}/token`]: { access_token: "access-1", token_type: "Bearer", refresh_token: "next" },
      },
    });
    await storeSignIn(at.agentDir, OVER);
    const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    const disk = vi.spyOn(nodeFiles, "create").mockRejectedValue(full);
    onTestFinished(() => disk.mockRestore());
    expect(await at.auth.token(signal)).toBe("access-1");
    expect(await storedSignIn(at.agentDir)).toMatchObject({ refresh_token: "refresh-0" });
    disk.mockRestore();
    await at.auth.close(60_000);
    expect(await storedSignIn(at.agentDir)).toMatchObject({
      access_token: "access-1",
      refresh_token: "next",
    });
  });

  test("a renewal that is never answered -> it ends, and the sign-in stays stored", async () => {
    const asked = Promise.withResolvers<void>();
    const at = await open({
      routes: {
        [`${ORIGIN}/token`]: ({ signal: given }) => {
          asked.resolve();
          return new Promise((_resolve, reject) => {
            given.addEventListener("abort", () => reject(given.reason), { once: true });
          });
        },
      },
    });
    await storeSignIn(at.agentDir, OVER);
    const token = at.auth.token(signal).catch((error: unknown) => error);
    await asked.promise;
    await at.auth.close(1);
    expect(await token).toMatchObject({ code: "cancelled" });
    expect(await storedSignIn(at.agentDir)).toMatchObject({ refresh_token: "refresh-0" });
  });

  test("a client that could not be made -> it settles", async () => {
    const at = await open({ client: () => Promise.reject(new Error("no certificate")) });
    await mkdir(join(at.agentDir, "mcp-oauth"));
    await storeSignIn(at.agentDir, OVER);
    await expect(at.auth.token(signal)).rejects.toThrow("no certificate");
    expect(await at.auth.close(0)).toBeUndefined();
  });
});
