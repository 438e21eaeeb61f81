/** Owns: what is asked for and taken of codes for another device, by the sections of RFC 8628. */
import { describe, expect, test } from "vitest";
import { DEVICE_GRANT } from "../../../../../../workers/connection/auth/grants/client.ts";
import { beginDevice, deviceTokens } from "../../../../../../workers/connection/auth/grants/device.ts";
import type { ClientRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import { type Answer, authServer, contextOf, discoveredOf, problemOf, publicClient } from "./support.ts";

const PUBLIC = new URL("https://docs.example/mcp");
const GOOD = {
  device_code: "device-code-1",
  user_code: "WDJB-MJHT",
  verification_uri: "https://as.example/device",
  verification_uri_complete: "https://as.example/device?user_code=WDJB-MJHT",
  expires_in: 1800,
  interval: 5,
};
type Changes = Record<string, unknown>;

async function codes(changes: Changes, { status = 200, client = publicClient, plan = {} }: Asking = {}) {
  const body = Object.fromEntries(
    Object.entries({ ...GOOD, ...changes }).filter(([, value]) => value !== undefined),
  );
  const server = await authServer(() => ({ status, body }));
  const metadata = { ...server.metadata, device_authorization_endpoint: `${server.issuer}/device` };
  const discovered = discoveredOf(metadata, { resource: "https://docs.example/mcp" });
  const begun = beginDevice({ discovered, client, scope: "read" }, contextOf(plan), PUBLIC);
  return { server, begun };
}
interface Asking {
  status?: number;
  client?: ClientRecord;
  plan?: Parameters<typeof contextOf>[0];
}

describe("section 3.1, the request", () => {
  test("a public client -> its id, scope and resource", async () => {
    const { server, begun } = await codes({});
    await begun;
    expect(server.asked.map(({ path, form }) => [path, form])).toEqual([
      ["/device", { client_id: "client-1", scope: "read", resource: "https://docs.example/mcp" }],
    ]);
  });

  test("a client with a secret -> proves who it is", async () => {
    const client: ClientRecord = { id: "mine", method: "client_secret_post", kind: "configured" };
    const { server, begun } = await codes({}, { client, plan: { clientId: "mine", clientSecret: "s3" } });
    await begun;
    expect(server.asked[0]?.form).toMatchObject({ client_id: "mine", client_secret: "s3" });
  });

  test.each<[string, string]>([
    ["invalid_client", "client-unknown"],
    ["unauthorized_client", "client-unknown"],
    ["invalid_scope", "scope-refused"],
    ["invalid_target", "resource-refused"],
    ["temporarily_unavailable", "unavailable"],
    ["own_error", "refused"],
  ])("the error %s -> %s", async (error, kind) => {
    const { begun } = await codes({ error }, { status: 400 });
    expect((await problemOf(begun)).kind).toBe(kind);
  });
});

describe("section 3.2, the answer", () => {
  test("all of it -> each field", async () => {
    const { begun } = await codes({});
    expect(await begun).toMatchObject({
      deviceCode: "device-code-1",
      userCode: "WDJB-MJHT",
      url: "https://as.example/device",
      urlWithCode: "https://as.example/device?user_code=WDJB-MJHT",
      interval: 5,
      life: 1800,
    });
  });

  test.each<[unknown, number]>([
    [undefined, 5],
    [1, 1],
    [0.2, 1],
    ["7", 7],
    [0, 5],
    [-3, 5],
    [null, 5],
    ["soon", 5],
    [{}, 5],
    [60, 60],
    [315_360_000, 60],
    [1e308, 60],
  ])("the interval %j -> asked each %i s", async (interval, seconds) => {
    const { begun } = await codes({ interval });
    expect((await begun).interval).toBe(seconds);
  });

  test.each<[string, Changes, Changes]>([
    [
      "Google's spelling",
      {
        verification_uri: undefined,
        verification_url: "https://g.example/d",
        verification_uri_complete: undefined,
      },
      { url: "https://g.example/d" },
    ],
    [
      "a fragment",
      { verification_uri: "https://as.example/#/device" },
      { url: "https://as.example/#/device" },
    ],
    ["a code with a space", { user_code: "WDJB MJHT" }, { userCode: "WDJB MJHT" }],
    ["a code of 40 characters", { user_code: "x".repeat(40) }, { userCode: "x".repeat(40) }],
    ["a life that is over", { expires_in: 0 }, { life: 0 }],
    ["a life as a text", { expires_in: "600" }, { life: 600 }],
  ])("%s -> taken", async (_title, changes, wanted) => {
    const { begun } = await codes(changes);
    expect(await begun).toMatchObject(wanted);
  });

  test.each<[string, unknown]>([
    ["of another origin", "https://other.example/device?user_code=WDJB-MJHT"],
    ["with credentials", "https://a:b@as.example/device"],
    ["javascript:", "javascript:alert(1)"],
    ["no text", { a: 1 }],
    ["too long", `https://as.example/${"x".repeat(3_000)}`],
    ["empty", ""],
  ])("a page with the code, %s -> left out, and the other one stays", async (_title, complete) => {
    const { begun } = await codes({ verification_uri_complete: complete });
    const pending = await begun;
    expect(pending.url).toBe(GOOD.verification_uri);
    expect(pending).not.toHaveProperty("urlWithCode");
  });

  test.each<[string, Changes, string]>([
    ["no user_code", { user_code: undefined }, "bad-answer"],
    ["an empty user_code", { user_code: "" }, "bad-answer"],
    ["a user_code of another type", { user_code: 12345678 }, "bad-answer"],
    ["a user_code of 41 characters", { user_code: "x".repeat(41) }, "bad-answer"],
    ["a user_code with an escape sequence", { user_code: "AB\u001b[2J" }, "bad-answer"],
    ["a user_code in two lines", { user_code: "AB\nCD" }, "bad-answer"],
    ["a user_code that runs backwards", { user_code: "AB\u202eCD" }, "bad-answer"],
    ["a user_code with a space at its end", { user_code: "ABCD " }, "bad-answer"],
    ["no device_code", { device_code: undefined }, "bad-answer"],
    ["a device_code that cannot be sent", { device_code: "a\nb" }, "bad-answer"],
    ["a device_code of 17 KB", { device_code: "x".repeat(17_000) }, "bad-answer"],
    ["no page", { verification_uri: undefined }, "bad-answer"],
    ["a page that is no address", { verification_uri: "as.example/device" }, "bad-answer"],
    ["a page by javascript:", { verification_uri: "javascript:alert(1)" }, "not-https"],
    ["a page by file:", { verification_uri: "file:///etc/passwd" }, "not-https"],
    ["a page by http", { verification_uri: "http://as.example/device" }, "not-https"],
    ["a page with credentials", { verification_uri: "https://a:b@as.example/device" }, "bad-answer"],
    ["a page in a private network", { verification_uri: "https://192.168.1.1/device" }, "private-address"],
    ["a page of 3 KB", { verification_uri: `https://as.example/${"x".repeat(3_000)}` }, "bad-answer"],
    ["no expires_in", { expires_in: undefined }, "bad-answer"],
    ["an expires_in below zero", { expires_in: -1 }, "bad-answer"],
    ["an expires_in that is no number", { expires_in: "soon" }, "bad-answer"],
  ])("%s -> $2", async (_title, changes, kind) => {
    const { begun } = await codes(changes);
    const problem = await problemOf(begun);
    expect(problem.kind).toBe(kind);
    expect(JSON.stringify(problem.facts)).not.toContain("device-code-1");
  });
});

describe("section 3.4 and 3.5, the question for the tokens", () => {
  const ask = async (answer: Answer) => {
    const server = await authServer(() => answer);
    const pending = {
      ...{ deviceCode: "device-code-1", userCode: "A", url: "https://as.example/", interval: 5, life: 9 },
      ...{ discovered: discoveredOf(server.metadata), client: publicClient, scope: "read" },
    };
    return { server, asked: deviceTokens(pending, contextOf()) };
  };

  test("the user has agreed -> tokens, with the scope that was granted", async () => {
    const { server, asked } = await ask({
      body: { access_token: "a", token_type: "Bearer", refresh_token: "r", scope: "read admin" },
    });
    expect(await asked).toMatchObject({ access_token: "a", refresh_token: "r", scope: "read admin" });
    expect(server.asked[0]?.form).toEqual({
      grant_type: DEVICE_GRANT,
      device_code: "device-code-1",
      client_id: "client-1",
    });
  });

  test.each<[string, number, string]>([
    ["authorization_pending", 400, "refused"],
    ["authorization_pending", 428, "refused"],
    ["slow_down", 400, "refused"],
    ["access_denied", 400, "denied"],
    ["access_denied", 403, "denied"],
    ["expired_token", 400, "timed-out"],
    ["invalid_grant", 400, "code-refused"],
    ["invalid_client", 401, "client-unknown"],
    ["server_error", 500, "unavailable"],
  ])("%s with status %i -> %s", async (error, status, kind) => {
    const { asked } = await ask({ status, body: { error, error_description: "device-code-1 waits" } });
    const problem = await problemOf(asked);
    expect(problem.kind).toBe(kind);
    expect(JSON.stringify(problem.facts)).not.toContain("device-code-1");
  });
});
