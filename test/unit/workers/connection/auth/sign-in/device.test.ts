/** Owns: when a code for another device is used, how often the server is asked for its answer (RFC 8628), and its ends. */
import { describe, expect, test } from "vitest";
import type { SignInStep } from "../../../../../../src/shared/protocol/session.ts";
import { DEVICE_GRANT } from "../../../../../../workers/connection/auth/grants/client.ts";
import { type ClientRecord, SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import { pollTokens } from "../../../../../../workers/connection/auth/sign-in/device.ts";
import type { SignInParts } from "../../../../../../workers/connection/auth/sign-in/prepare.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { authServer, contextOf, discoveredOf, problemOf, publicClient } from "../grants/support.ts";
import { recordWith, type TargetParts, type World, world } from "./support.ts";

/** A server whose token endpoint gives these answers in turn, the last one for ever; null: it cuts the connection. */
async function polled(...answers: (string | number | null)[]) {
  const server = await authServer((_asked, nth) => {
    const answer = answers[Math.min(nth, answers.length - 1)];
    if (answer === null || answer === undefined) return null;
    if (typeof answer === "number") return { status: answer, body: {} };
    if (answer !== "tokens") return { status: 400, body: { error: answer } };
    return { body: { access_token: "a", token_type: "Bearer" } };
  });
  const pending = {
    ...{ deviceCode: "d", userCode: "A", url: "https://as.example/", interval: 5, life: 900 },
    ...{ discovered: discoveredOf(server.metadata), client: publicClient, scope: undefined },
  };
  const waits: number[] = [];
  const most = 40;
  const wait = async (seconds: number): Promise<void> => {
    waits.push(seconds);
    if (waits.length > most) throw new SignInProblem("cancelled");
  };
  return { waits, poll: () => pollTokens(pending, contextOf(), wait) };
}

const PENDING = "authorization_pending";

describe("section 3.5, the questions", () => {
  test.each<[string, (string | number | null)[], number[]]>([
    ["the user agrees at once", ["tokens"], [5]],
    ["later", [PENDING, PENDING, "tokens"], [5, 5, 5]],
    ["the server wants it slower", ["slow_down", PENDING, "slow_down", "tokens"], [5, 10, 10, 15]],
    ["the network fails, then the server", [null, 503, 429, "tokens"], [5, 10, 20, 40]],
  ])("%s -> tokens after waits of $2 s", async (_title, answers, waits) => {
    const at = await polled(...answers);
    expect(await at.poll()).toMatchObject({ access_token: "a" });
    expect(at.waits).toEqual(waits);
  });

  test.each<[string, SignInProblem["kind"]]>([
    ["access_denied", "denied"],
    ["expired_token", "timed-out"],
    ["invalid_grant", "code-refused"],
    ["unauthorized_client", "client-unknown"],
    ["anything_else", "refused"],
  ])("%s -> the end: %s", async (error, kind) => {
    const at = await polled(PENDING, error);
    expect((await problemOf(at.poll())).kind).toBe(kind);
    expect(at.waits).toEqual([5, 5]);
  });

  test("slow_down for ever -> each wait is five seconds longer, up to the end of the sign-in", async () => {
    const at = await polled("slow_down");
    expect((await problemOf(at.poll())).kind).toBe("cancelled");
    expect(at.waits.slice(0, 4)).toEqual([5, 10, 15, 20]);
    expect(at.waits.at(-1)).toBe(205);
  });
});

const OFFER = {
  device_code: "device-code-1",
  user_code: "WDJB-MJHT",
  expires_in: 600,
  interval: 1,
};

interface Given {
  plan?: Partial<OAuthPlan>;
  /** What the metadata say beside the usual. */
  metadata?: Record<string, unknown>;
  hasBrowser?: boolean;
  target?: TargetParts;
  limits?: Partial<SignInParts["limits"]>;
  /** The answer of the device authorization endpoint. */
  offer?: Record<string, unknown>;
  /** The errors before the tokens. */
  errors?: string[];
  client?: ClientRecord;
  /** The id of a client that may not ask for codes. */
  refuses?: string;
  /** The issuer that its metadata claim to be, as the user accepts. */
  passesAs?: string;
}

async function begun({
  plan = {},
  metadata,
  hasBrowser = false,
  target = {},
  limits,
  offer,
  errors = [],
  client,
  refuses,
  passesAs,
}: Given = {}) {
  const left = [...errors];
  const asked: string[] = [];
  const server = await authServer(({ path, form }) => {
    asked.push(path);
    if (path === "/device" && form.client_id === refuses) {
      return { status: 400, body: { error: "unauthorized_client" } };
    }
    if (path === "/device") {
      return { body: { ...OFFER, verification_uri: `${server.issuer}/page`, ...offer } };
    }
    const error = left.shift();
    if (error !== undefined) return { status: 400, body: { error } };
    return { body: { access_token: "token-1", token_type: "Bearer", refresh_token: "token-2" } };
  });
  const all: World = await world(
    {},
    {
      hasBrowser: async () => hasBrowser,
      discover: async () =>
        discoveredOf(
          {
            ...server.metadata,
            device_authorization_endpoint: `${server.issuer}/device`,
            ...metadata,
            ...(passesAs && { issuer: passesAs }),
          },
          { foundAt: server.issuer, ...(passesAs && { acceptedIssuer: passesAs }) },
        ),
      clientFor: async ({ forDevice, stored, reuse }) => {
        if (client) return client;
        if (stored && reuse) return stored;
        return { ...publicClient, id: forDevice ? "for-device" : "for-browser" };
      },
      limits: { secondMs: 1, ...limits },
    },
  );
  const aimed = all.target("linear", { plan, ...target });
  return { all, aimed, asked, server, begin: (agreed = {}) => all.signIns.begin(aimed, agreed) };
}

describe("when a code is used", () => {
  test.each<[string, Given, { device?: boolean }, SignInStep["step"]]>([
    ["no browser, offered", {}, {}, "device"],
    [
      "no browser, offered by the list of grants too",
      { metadata: { grant_types_supported: [DEVICE_GRANT] } },
      {},
      "device",
    ],
    [
      "no browser, and the list of grants lacks it",
      { metadata: { grant_types_supported: ["authorization_code"] } },
      {},
      "open",
    ],
    ["no browser, not offered", { metadata: { device_authorization_endpoint: undefined } }, {}, "open"],
    ["a browser", { hasBrowser: true }, {}, "open"],
    ["a browser, and deviceCode: true", { hasBrowser: true, plan: { deviceCode: true } }, {}, "device"],
    ["deviceCode: false", { plan: { deviceCode: false } }, {}, "open"],
    ["a browser, and the user wants a code", { hasBrowser: true }, { device: true }, "device"],
    [
      "deviceCode: false, and the user wants a code",
      { plan: { deviceCode: false } },
      { device: true },
      "device",
    ],
    [
      "deviceCode: true, and the user wants a link",
      { plan: { deviceCode: true } },
      { device: false },
      "open",
    ],
    ["no browser, and the server gives no code", { offer: { user_code: "" } }, {}, "open"],
    [
      "no browser, and the page is another server's",
      { offer: { verification_uri: "https://b.example/" } },
      {},
      "open",
    ],
    [
      "the same, but the user wants a code",
      { offer: { verification_uri: "https://b.example/" } },
      { device: true },
      "ask",
    ],
    [
      "its own page, and it calls itself another server",
      { passesAs: "https://bank.example" },
      { device: true },
      "ask",
    ],
    [
      "its own page, and it calls itself the issuer that the user's own file names",
      { passesAs: "https://bank.example", plan: { issuer: "https://bank.example" } },
      { device: true },
      "ask",
    ],
    [
      "the page is another server's, the user wants a code, and the user's own file names the metadata",
      {
        offer: { verification_uri: "https://b.example/" },
        plan: { authServerMetadataUrl: "https://as.example/m" },
      },
      { device: true },
      "device",
    ],
    [
      "the same, but a project's file names the metadata",
      {
        offer: { verification_uri: "https://b.example/" },
        plan: { authServerMetadataUrl: "https://as.example/m" },
        target: { isOwnPlan: false },
      },
      { device: true },
      "ask",
    ],
  ])("%s -> $3", async (_title, given, agreed, step) => {
    const { begin } = await begun(given);
    expect((await begin(agreed)).step).toBe(step);
  });

  test.each<[string, Given, string]>([
    ["not offered", { metadata: { device_authorization_endpoint: undefined } }, "no-device-code"],
    ["no code", { offer: { user_code: "" } }, "bad-answer"],
  ])("deviceCode: true, and %s -> the problem", async (_title, given, reason) => {
    const { begin, all } = await begun({ ...given, plan: { deviceCode: true } });
    await expect(begin()).rejects.toMatchObject({ data: { reason } });
    expect(all.signIns.isRunning("linear")).toBe(false);
  });

  const secret = { clientId: "mine", clientSecret: "s3cret" };
  test.each<[string, Given, string[]]>([
    [
      "at the endpoint for codes",
      { metadata: { device_authorization_endpoint: "https://b.example/device" } },
      [],
    ],
    ["at the token endpoint", { metadata: { token_endpoint: "https://b.example/token" } }, []],
    ["nowhere but at the server's own machine", {}, ["/device"]],
  ])(
    "the secret of the user's client would be sent elsewhere %s -> asked: $2",
    async (_title, given, wanted) => {
      const url = new URL("http://127.0.0.1:1/mcp");
      const { begin, asked } = await begun({
        ...given,
        plan: { deviceCode: true, ...secret },
        target: { url },
        limits: { secondMs: 60_000 },
        client: { id: "mine", method: "client_secret_post", kind: "configured" },
      });
      const outcome = await begin().then(
        ({ step }) => step,
        (error: { data?: { reason?: string } }) => error.data?.reason,
      );
      expect(outcome).toBe(wanted.length === 0 ? "secret-elsewhere" : "device");
      expect(asked).toEqual(wanted);
    },
  );

  test("the stored client may not ask for codes -> another one is registered", async () => {
    const stored = { ...publicClient, id: "old" };
    const { all, begin, server, asked } = await begun({ refuses: "old", limits: { secondMs: 60_000 } });
    const { issuer, token_endpoint: tokenEndpoint = "" } = server.metadata;
    const record = { ...recordWith(all.server), issuer, tokenEndpoint, client: stored };
    const again = await all.signIns.begin(all.target("sentry", { record, plan: { deviceCode: true } }), {});
    expect(again).toMatchObject({ step: "device", userCode: "WDJB-MJHT" });
    expect(asked).toEqual(["/device", "/device"]);
    expect((await begin()).step).toBe("device");
  });
});

describe("its ends", () => {
  test("the user agrees -> tokens are stored and told as secrets, the server connects", async () => {
    const { begin, all, aimed, asked } = await begun({ errors: ["authorization_pending", "slow_down"] });
    const step = await begin();
    expect(step).toMatchObject({ step: "device", userCode: "WDJB-MJHT", endsInMs: 600_000 });
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
    expect(asked).toEqual(["/device", "/token", "/token", "/token"]);
    expect(aimed.store.record).toMatchObject({ access_token: "token-1", client: { id: "for-device" } });
    expect(aimed.secrets).toEqual(expect.arrayContaining(["device-code-1", "token-1", "token-2"]));
    expect(all.written.join("\n")).not.toMatch(/device-code-1|token-|WDJB/);
  });

  test("a second wish -> the same code", async () => {
    const { begin, asked } = await begun({ limits: { secondMs: 60_000 } });
    const [one, two] = [await begin(), await begin()];
    expect(two).toMatchObject({ ...one, endsInMs: expect.any(Number) });
    expect(asked).toEqual(["/device"]);
  });

  test("cancelled while nobody has answered -> the end, and nothing is asked or stored", async () => {
    const { begin, all, aimed, asked } = await begun({ limits: { secondMs: 60_000 } });
    const step = await begin();
    if (step.step !== "device") throw new Error(step.step);
    expect(await all.signIns.paste(step.id, "anything")).toBeUndefined();
    all.signIns.cancel(step.id);
    expect(await all.ended()).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(asked).toEqual(["/device"]);
    expect(aimed.store.record).toBeUndefined();
  });

  test.each<[string, Given]>([
    ["the server's time is over", { offer: { expires_in: 0 }, limits: { secondMs: 60_000 } }],
    ["our own time is over", { limits: { secondMs: 60_000, deviceMs: 1 } }],
  ])("%s -> timed out", async (_title, given) => {
    const { begin, all } = await begun(given);
    await begin();
    expect(await all.ended()).toMatchObject({ ok: false, error: { data: { reason: "timed-out" } } });
  });

  test.each([1e308, 315_360_000])("a code for %d s -> ended after 15 minutes", async (expires_in) => {
    const { begin } = await begun({ offer: { expires_in } });
    expect(await begin()).toMatchObject({ endsInMs: 900_000 });
  });
});
