/**
 * Owns: what the user's requests about sign-ins come to, and what main is told of them. The sign-ins behind the requests
 * and the connections are fakes.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import type { WorkerEvent } from "../../../../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import type { SessionAuth } from "../../../../../workers/connection/auth/auth.ts";
import type { RunningConfiguration } from "../../../../../workers/connection/config/config.ts";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import { plan } from "../../../../../workers/connection/config/plan/plan.ts";
import { Supervisor } from "../../../../../workers/connection/servers/supervisor.ts";
import {
  createSignInRequests,
  openSessionAuth,
  type SessionSignInsOptions,
} from "../../../../../workers/connection/session/sign-ins.ts";
import { serve } from "../../../../support/http-server.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { recordingLog } from "../../recording-log.ts";
import { storeSignIn, URL_OF_SERVER } from "../auth/support.ts";
import { definitionOf, fakeConnect, type Opening } from "../servers/support.ts";

type Asked = { server: Parameters<SessionAuth["signIn"]>[0]; wish: Parameters<SessionAuth["signIn"]>[1] };

const OPEN_STEP = { step: "renewed", id: "1" } as const;
const remote = (entry: object = {}): object => ({ command: undefined, url: URL_OF_SERVER, ...entry });
const never = (): AbortSignal => new AbortController().signal;

/** Sign-ins that note what they are asked for. */
function fakeAuth() {
  const asked: Asked[] = [];
  const done: string[] = [];
  const state = { isChallenged: false, pasted: undefined as string | undefined };
  const auth: SessionAuth = {
    of: () => undefined,
    forTrial: () => undefined,
    status: () => undefined,
    hasOther: async () => false,
    isChallenged: () => state.isChallenged,
    signIn: async (server, wish) => {
      asked.push({ server, wish });
      return OPEN_STEP;
    },
    paste: async (id, text) => {
      done.push(`paste ${id} ${text}`);
      return state.pasted;
    },
    cancel: (id) => void done.push(`cancel ${id}`),
    signOut: async ({ definition: { name } }) => {
      done.push(`sign out ${name}`);
      return `${name} is signed out.`;
    },
    abandon: () => undefined,
    close: async () => undefined,
  };
  return { auth, asked, done, state };
}

interface OpenOptions {
  entries?: Record<string, object>;
  /** What the configuration says beside its servers. */
  state?: Partial<RunningConfiguration["state"]>;
}

async function open({ entries = { s: remote() }, state = {} }: OpenOptions = {}) {
  const { connect, openings } = fakeConnect();
  const { log, lines } = recordingLog();
  const events: WorkerEvent[] = [];
  const lifetime = new AbortController();
  const fake = fakeAuth();
  const agentDir = await tempFolder();
  const emit = (event: WorkerEvent): void => void events.push(event);
  const supervisor: Supervisor = new Supervisor({
    ...{ cwd: agentDir, npxCacheFile: "/npx", log, emit, connect },
    approvals: { of: () => undefined },
    settings: () => DEFAULT_SETTINGS,
    onStatus: () => undefined,
    onTools: () => undefined,
  });
  onTestFinished(() => supervisor.close());
  const edit = (before: Record<string, object>, after: Record<string, object>): void => {
    const [from, to] = [before, after].map((all) => ({
      servers: Object.entries(all).map(([name, entry]) => definitionOf(name, entry)),
      settings: DEFAULT_SETTINGS,
    }));
    if (from && to) supervisor.carryOut(plan(from, to));
  };
  edit({}, entries);
  const options: SessionSignInsOptions = {
    ...{ agentDir, cwd: agentDir, log, emit },
    askUser: async () => undefined,
    supervisor: () => supervisor,
    settings: () => DEFAULT_SETTINGS,
    signal: lifetime.signal,
  };
  const running = {
    state: { questions: [], refused: [], problems: [], ...state },
    now: { settings: DEFAULT_SETTINGS },
  } as unknown as RunningConfiguration;
  return {
    ...fake,
    ...{ supervisor, openings, lines, events, lifetime, options, agentDir },
    edit,
    remove: () => edit(entries, {}),
    requests: createSignInRequests(fake.auth, Promise.resolve(running), options),
  };
}

const asksForSignIn = new ThreadsError("needs_auth", "s: it needs a sign-in.");

/** The connection that was asked for as the n-th. */
async function openingOf({ openings }: { openings: readonly Opening[] }, nth = 0): Promise<Opening> {
  await expect.poll(() => openings.length).toBeGreaterThan(nth);
  const found = openings[nth];
  if (!found) throw new Error("no connection was asked for");
  return found;
}

describe("signIn", () => {
  test("a server that was never asked -> it is asked first, so that it can say what it wants", async () => {
    const at = await open();
    const step = at.requests.signIn({ server: "s", agreed: { fromPi: true } }, never());
    const opening = await openingOf(at);
    expect(at.asked).toEqual([]);
    opening.fail(asksForSignIn);
    expect(await step).toEqual(OPEN_STEP);
    expect(at.asked[0]?.wish.agreed).toEqual({ fromPi: true });
    expect(at.asked[0]?.server).toMatchObject({ url: URL_OF_SERVER, definition: { name: "s" } });
  });

  test("a server that has said what it wants -> it is not asked again", async () => {
    const at = await open();
    at.state.isChallenged = true;
    await at.requests.signIn({ server: "s" }, never());
    expect([at.openings.length, at.asked.length]).toEqual([0, 1]);
  });

  test("a connected server -> it is not asked again", async () => {
    const at = await open();
    const connected = at.supervisor.get("s").connect("user");
    (await openingOf(at)).open();
    await connected;
    await at.requests.signIn({ server: "s" }, never());
    expect([at.openings.length, at.asked.length]).toEqual([1, 1]);
  });

  test("the headers of the entry -> as they are resolved", async () => {
    const at = await open({ entries: { s: remote({ headers: { "X-Key": "!echo from-a-command" } }) } });
    at.state.isChallenged = true;
    await at.requests.signIn({ server: "s" }, never());
    expect(at.asked[0]?.server.headers).toEqual({ "X-Key": "from-a-command" });
  });

  test("the user gives up while the server is asked -> cancelled, and no sign-in begins", async () => {
    const at = await open();
    const given = new AbortController();
    const step = at.requests.signIn({ server: "s" }, given.signal);
    await openingOf(at);
    given.abort();
    await expect(step).rejects.toMatchObject({
      code: "cancelled",
      message: "the sign-in to s was cancelled.",
    });
    expect(at.asked).toEqual([]);
  });

  test.each<[string, object]>([
    ["switched off", { enabled: false }],
    ["edited", { url: "https://other.test/mcp" }],
  ])("the server is %s while it is asked -> cancelled, and no sign-in begins", async (_what, entry) => {
    const at = await open();
    const step = at.requests.signIn({ server: "s" }, never());
    await openingOf(at);
    at.edit({ s: remote() }, { s: remote(entry) });
    await expect(step).rejects.toMatchObject({
      code: "cancelled",
      message: "The sign-in to s is cancelled, since the server was edited or switched off.",
    });
    expect(at.asked).toEqual([]);
  });

  test.each(["the request", "the session"])("%s ends later -> the sign-in learns it", async (what) => {
    const at = await open();
    at.state.isChallenged = true;
    const request = new AbortController();
    await at.requests.signIn({ server: "s" }, request.signal);
    expect(at.asked[0]?.wish.signal.aborted).toBe(false);
    (what === "the request" ? request : at.lifetime).abort();
    expect(at.asked[0]?.wish.signal.aborted).toBe(true);
  });
});

describe("the connect after a sign-in", () => {
  const signedIn = async (at: Awaited<ReturnType<typeof open>>): Promise<number | undefined> => {
    at.state.isChallenged = true;
    await at.requests.signIn({ server: "s" }, never());
    return at.asked[0]?.wish.signedIn();
  };

  test("the server connects -> the number of its tools", async () => {
    const at = await open();
    const tools = signedIn(at);
    (await openingOf(at)).open({ listTools: async () => [{ name: "a" }, { name: "b" }] });
    expect(await tools).toBe(2);
  });

  test("it does not connect -> no number; its status says why", async () => {
    const at = await open();
    const tools = signedIn(at);
    (await openingOf(at)).fail(asksForSignIn);
    expect(await tools).toBeUndefined();
    expect(at.supervisor.get("s").phase).toBe("needs-auth");
  });
});

describe("a name that no request can mean", () => {
  const request = (at: Awaited<ReturnType<typeof open>>, what: "signIn" | "signOut", server: string) =>
    at.requests[what]({ server }, never());

  test.each(["signIn", "signOut"] as const)("%s of a local server -> it takes no sign-in", async (what) => {
    const at = await open({ entries: { local: {} } });
    await expect(request(at, what, "local")).rejects.toMatchObject({
      code: "bad_config",
      message: "local is a local program and needs no sign-in.",
    });
  });

  test.each(["signIn", "signOut"] as const)("%s of a server without consent -> it says so", async (what) => {
    const at = await open({ state: { questions: [{ server: "asked", hash: "h", question: "q" }] } });
    await expect(request(at, what, "asked")).rejects.toMatchObject({
      message: "The server asked waits for your consent.",
    });
  });

  test.each(["signIn", "signOut"] as const)("%s of an unknown server -> unknown_server", async (what) => {
    const at = await open();
    await expect(request(at, what, "other")).rejects.toMatchObject({ code: "unknown_server" });
    expect([at.asked, at.done]).toEqual([[], []]);
  });

  test("the server is removed while it is asked -> server_removed, and no sign-in begins", async () => {
    const at = await open();
    at.remove();
    await expect(request(at, "signIn", "s")).rejects.toMatchObject({ code: "server_removed" });
    expect(at.asked).toEqual([]);
  });
});

describe("the other requests", () => {
  test("pasteSignIn -> what is wrong with the text, or nothing", async () => {
    const at = await open();
    at.state.pasted = "There is no code in that.";
    expect(await at.requests.pasteSignIn({ id: "1", text: "x" }, never())).toEqual({
      problem: "There is no code in that.",
    });
    at.state.pasted = undefined;
    expect(await at.requests.pasteSignIn({ id: "1", text: "code" }, never())).toEqual({});
    expect(at.done).toEqual(["paste 1 x", "paste 1 code"]);
  });

  test("cancelSignIn -> that sign-in", async () => {
    const at = await open();
    await at.requests.cancelSignIn({ id: "7" }, never());
    expect(at.done).toEqual(["cancel 7"]);
  });

  test("signOut -> the server is signed out first, then connected without its tokens", async () => {
    const at = await open();
    const text = at.requests.signOut({ server: "s" }, never());
    const opening = await openingOf(at);
    expect(at.done).toEqual(["sign out s"]);
    opening.fail(asksForSignIn);
    expect(await text).toEqual({ text: "s is signed out." });
  });
});

describe("what main is told", () => {
  test("a renewal -> its begin and its end, and the status of the server", async () => {
    const server = await serve((_asked, response) => {
      const answer = JSON.stringify({ access_token: "access-1", token_type: "Bearer" });
      response.writeHead(200, { "content-type": "application/json" }).end(answer);
    });
    const at = await open();
    const auth = openSessionAuth(at.options);
    onTestFinished(() => auth.close(0));
    await storeSignIn(at.agentDir, {
      ...{ refresh_token: "r", obtainedAt: 1_000, expiresAt: 2_000, tokenEndpoint: `${server.origin}/token` },
    });
    const requests = auth.of(at.supervisor.get("s").authServer({ url: URL_OF_SERVER, headers: {} }));
    expect(await requests?.token(never())).toBe("access-1");
    const told = at.events.filter(({ type }) => type === "renewing");
    expect(told).toEqual([
      { type: "renewing", open: 1 },
      { type: "renewing", open: 0 },
    ]);
    expect(at.events.at(-1)).toMatchObject({ type: "server", status: { name: "s" } });
    expect(auth.status("s")).toMatchObject({ state: "signed-in" });
  });
});
