/** Owns: a sign-in as the user sees it: the questions, the dialog, what is pasted, and every way in which it ends. */
import { afterEach, describe, expect, it, test, vi } from "vitest";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { SignInStep, StatusReport } from "../../../../src/shared/protocol/session.ts";
import { DEVICE, TRUST } from "../../../../src/ui/sign-in/words.ts";
import { PATIENCE_MS } from "../../../support/patience.ts";
import { exitCodeOf } from "../../exit-code.ts";
import { makeReport, makeStatus } from "../../server-status.ts";
import { settled } from "../../settled.ts";
import { nothingTyped } from "../typed.ts";
import { CODE, NEEDING, OPEN, type Signing, signing, URL_OF_PAGE } from "./support.ts";

const begun = (): SignInStep => OPEN;
const signIn = ["signIn", { server: "linear" }];
const SIGNED_IN = ["linear: signed in, 23 tools.", "info"];
const OK = { ok: true, tools: 23 } as const;
const never = new Promise<never>(() => undefined);
const restarted = new ThreadsError("runtime_restarted", "The connection worker ended with code 7.");
const CUT_OFF =
  "linear: the sign-in was cut off, because the connection worker ended. /mcp auth linear begins it again.";
/** Over RPC a notice holds the address as well. */
const withoutLink = ({ notices }: Signing): unknown[] =>
  notices.filter(([text]) => !text.includes(URL_OF_PAGE));

/** A sign-in whose dialog is open. */
async function opened(
  options: Parameters<typeof signing>[0] = {},
): Promise<Signing & { done: ReturnType<Signing["signIns"]["byUser"]> }> {
  const at = signing({ input: () => never, ...options, answers: { signIn: begun, ...options.answers } });
  const done = at.signIns.byUser("linear");
  await settled();
  expect(at.dialogs.at(-1)?.method).toBe("input");
  return { ...at, done };
}

describe("the dialog", () => {
  test("the browser answers -> the dialog closes, and one line says how many tools there are", async () => {
    const at = await opened();
    expect(at.dialogs).toEqual([
      { method: "input", title: expect.stringContaining(`\n${URL_OF_PAGE}\n`), message: "address or code" },
    ]);
    expect(at.notices).toEqual([[`The sign-in page of linear:\n${URL_OF_PAGE}`, "info"]]);
    expect(at.signIns.isRunning("linear")).toBe(true);
    at.end(OK);
    await at.done;
    expect(withoutLink(at)).toEqual([SIGNED_IN]);
    expect(at.asked).toEqual([signIn]);
    expect(at.signIns.isRunning("linear")).toBe(false);
  });

  test("in a terminal -> the address is a link in the dialog, and no notice repeats it", async () => {
    const at = await opened({ mode: "tui" });
    expect(at.notices).toEqual([]);
    expect(at.dialogs[0]?.title).toContain(
      `\u001b]8;;${URL_OF_PAGE}\u001b\\${URL_OF_PAGE}\u001b]8;;\u001b\\`,
    );
    at.end(OK);
    await at.done;
  });

  test("the sign-in was renewed -> no dialog", async () => {
    const at = signing({ answers: { signIn: () => ({ step: "renewed", id: "1" }) } });
    const done = at.signIns.byUser("linear");
    await settled();
    at.end({ ok: true });
    await done;
    expect(at.dialogs).toEqual([]);
    expect(at.notices).toEqual([
      ["linear: signed in, but the server did not connect. /mcp says why.", "warning"],
    ]);
  });

  test("the end of another sign-in -> the dialog stays", async () => {
    const at = await opened();
    at.end(OK, "2");
    await settled();
    expect(withoutLink(at)).toEqual([]);
    at.end(OK);
    await at.done;
  });

  test("it fails -> the worker's sentence with its remedy", async () => {
    const at = await opened();
    const error = { code: "needs_auth" as const, message: "linear: it was declined.", remedy: "Again." };
    at.end({ ok: false, error });
    await at.done;
    expect(withoutLink(at)).toEqual([["linear: it was declined. Again.", "error"]]);
  });

  it.each<[string, unknown]>([
    ["Escape", undefined],
    ["over RPC a number", 5],
    ["over RPC an object", { value: "x" }],
    ["over RPC null", null],
  ])("%s -> cancelled, and the worker is told", async (_name, value) => {
    const at = signing({ input: () => value, answers: { signIn: begun } });
    await at.signIns.byUser("linear");
    expect(at.asked).toEqual([signIn, ["cancelSignIn", { id: "1" }]]);
    expect(withoutLink(at)).toEqual([["linear: the sign-in is cancelled.", "info"]]);
    // The worker tells the end of a cancelled sign-in, too.
    at.end({ ok: false, error: { code: "cancelled", message: "linear: cancelled." } });
    await settled();
    expect(withoutLink(at)).toHaveLength(1);
  });

  test("the worker cannot be told that the user cancelled -> a line in the log, and no error", async () => {
    const cancelSignIn = () => Promise.reject(new Error("late"));
    const at = signing({ input: () => undefined, answers: { signIn: begun, cancelSignIn } });
    await at.signIns.byUser("linear");
    expect(withoutLink(at)).toEqual([["linear: the sign-in is cancelled.", "info"]]);
    expect(at.logged).toEqual(["the sign-in to linear could not be cancelled: late"]);
  });

  it.each(["javascript:alert(1)", "https://a.test/\u001b[2J", `https://a.test/${"x".repeat(9_000)}`])(
    "an address that nobody should open: %j -> not shown, cancelled, one error",
    async (url) => {
      const at = signing({ answers: { signIn: () => ({ ...OPEN, url }) } });
      await at.signIns.byUser("linear");
      expect(at.dialogs).toEqual([]);
      expect(at.notices).toEqual([
        [expect.stringMatching(/^linear: The address of its sign-in page/), "error"],
      ]);
      expect(at.asked.at(-1)).toEqual(["cancelSignIn", { id: "1" }]);
    },
  );

  test("the worker never tells the end -> the dialog closes when the time is over", async () => {
    const at = signing({
      input: () => never,
      graceMs: 0,
      answers: { signIn: () => ({ ...OPEN, endsInMs: 0 }) },
    });
    await at.signIns.byUser("linear");
    expect(withoutLink(at)).toEqual([
      ["linear: The sign-in did not end in time. /mcp auth linear begins it again.", "error"],
    ]);
    expect(at.asked.at(-1)).toEqual(["cancelSignIn", { id: "1" }]);
  });

  test("the dialog itself fails -> cancelled, one error", async () => {
    const input = () => Promise.reject(new Error("no screen"));
    const at = signing({ input, answers: { signIn: begun } });
    await at.signIns.byUser("linear");
    expect(withoutLink(at)).toEqual([["linear: no screen", "error"]]);
    expect(at.asked.at(-1)).toEqual(["cancelSignIn", { id: "1" }]);
  });
});

describe("a code for another device", () => {
  const coded = (options: Parameters<typeof signing>[0] = {}) =>
    signing({ ...options, answers: { signIn: () => CODE, ...options.answers } });
  const TEXT = [
    "To sign in to linear, open this page on any device:",
    CODE.url,
    "and enter this code: WDJB-MJHT",
    "Or open the page that has the code already:",
    `${CODE.urlWithCode}`,
    "The code comes from as.example. Agree on that page only if it shows this code.",
  ].join("\n");

  test("the user agrees there -> the dialog closes; a program reads page and code in a notice, too", async () => {
    const at = coded({ select: () => never as never });
    const done = at.signIns.byUser("linear");
    await settled();
    expect(at.dialogs).toEqual([{ method: "select", title: TEXT, options: [...DEVICE] }]);
    expect(at.notices).toEqual([
      [`The sign-in page of linear, with the code WDJB-MJHT:\n${CODE.url}`, "info"],
    ]);
    at.end(OK);
    await done;
    expect(at.notices.at(-1)).toEqual(SIGNED_IN);
    expect(at.asked).toEqual([signIn]);
  });

  test("in a terminal -> both pages are links, and no notice repeats them", async () => {
    const at = coded({ mode: "tui", select: () => never as never });
    const done = at.signIns.byUser("linear");
    await settled();
    for (const url of [CODE.url, `${CODE.urlWithCode}`]) {
      expect(at.dialogs[0]?.title).toContain(`\u001b]8;;${url}\u001b\\${url}\u001b]8;;\u001b\\`);
    }
    expect(at.notices).toEqual([]);
    at.end(OK);
    await done;
  });

  test("Enter at once -> the same dialog again; after ten of them it is cancelled", async () => {
    const at = coded({ select: (_title, [first]) => first });
    await at.signIns.byUser("linear");
    expect(at.dialogs).toHaveLength(10);
    expect(at.asked.at(-1)).toEqual(["cancelSignIn", { id: "1" }]);
  });

  test("a person who presses Enter again and again in a terminal -> waits on, with a link as with a code", async () => {
    nothingTyped();
    let left = 30;
    const select = (_title: string, [first]: readonly string[]) => (left-- > 0 ? first : (never as never));
    const code = coded({ mode: "tui", select });
    const link = signing({
      mode: "tui",
      input: () => (left-- > 0 ? "" : never),
      answers: { signIn: () => OPEN },
    });
    for (const at of [code, link]) {
      left = 30;
      const done = at.signIns.byUser("linear");
      await vi.waitFor(() => expect(at.dialogs).toHaveLength(31), PATIENCE_MS);
      at.end(OK);
      await done;
      expect(at.asked).toEqual([signIn]);
    }
  });

  it.each(["yes", "", undefined, 5 as never])(
    "Escape or another answer (%j) -> cancelled",
    async (answer) => {
      const at = coded({ select: () => answer });
      await at.signIns.byUser("linear");
      expect(at.asked).toEqual([signIn, ["cancelSignIn", { id: "1" }]]);
      expect(at.notices.at(-1)).toEqual(["linear: the sign-in is cancelled.", "info"]);
    },
  );

  test("a link instead -> the code is cancelled, and the sign-in begins with a link", async () => {
    const steps: SignInStep[] = [CODE, { ...OPEN, id: "2" }];
    const at = coded({
      select: () => DEVICE[1],
      input: () => never,
      answers: { signIn: () => steps.shift() },
    });
    const done = at.signIns.byUser("linear");
    await settled();
    expect(at.asked).toEqual([
      signIn,
      ["cancelSignIn", { id: "1" }],
      ["signIn", { server: "linear", agreed: { device: false } }],
    ]);
    at.end({ ok: false, error: { code: "cancelled", message: "linear: cancelled." } });
    at.end(OK, "2");
    await done;
    expect(at.dialogs.map(({ method }) => method)).toEqual(["select", "input"]);
    expect(at.notices.at(-1)).toEqual(SIGNED_IN);
  });

  it.each(["javascript:alert(1)", "https://a.test/\u001b[2J"])("the page is %j -> not shown", async (url) => {
    const at = coded({ answers: { signIn: () => ({ ...CODE, url }) } });
    await at.signIns.byUser("linear");
    expect(at.dialogs).toEqual([]);
    expect(at.asked.at(-1)).toEqual(["cancelSignIn", { id: "1" }]);
  });

  test("the page with the code cannot be shown -> the other one alone", async () => {
    const urlWithCode = "https://as.example/\u001b[2J";
    const at = coded({ select: () => undefined, answers: { signIn: () => ({ ...CODE, urlWithCode }) } });
    await at.signIns.byUser("linear");
    expect(at.dialogs[0]?.title).not.toContain("has the code already");
  });
});

describe("a paste", () => {
  test("that does not fit -> told, and asked again; one that fits -> the end is waited for", async () => {
    const texts = ["", "  ", "wrong", " https://127.0.0.1/callback?code=1\n"];
    const pasteSignIn = ({ text }: { text: string }) =>
      text === "wrong" ? { problem: "Another\nsign-in." } : {};
    const at = signing({ input: () => texts.shift(), answers: { signIn: begun, pasteSignIn } });
    const done = at.signIns.byUser("linear");
    await settled();
    expect(at.dialogs).toHaveLength(4);
    at.end(OK);
    await done;
    expect(at.asked).toEqual([
      signIn,
      ["pasteSignIn", { id: "1", text: "wrong" }],
      ["pasteSignIn", { id: "1", text: "https://127.0.0.1/callback?code=1" }],
    ]);
    const empty = [expect.stringMatching(/^linear: Nothing was pasted\./), "warning"];
    expect(withoutLink(at)).toEqual([empty, empty, ["linear: Another sign-in.", "warning"], SIGNED_IN]);
  });

  test("of many megabytes -> not sent", async () => {
    const texts = ["x".repeat(5_000_000)];
    const at = signing({ input: () => texts.shift(), answers: { signIn: begun } });
    await at.signIns.byUser("linear");
    expect(at.asked.map(([method]) => method)).toEqual(["signIn", "cancelSignIn"]);
    expect(withoutLink(at)[0]).toEqual([expect.stringContaining("too long"), "warning"]);
  });

  test("over RPC a program that answers every dialog at once -> ten dialogs, then cancelled", async () => {
    const at = signing({
      input: () => "hello",
      answers: { signIn: begun, pasteSignIn: () => ({ problem: "No." }) },
    });
    await at.signIns.byUser("linear");
    expect(at.dialogs).toHaveLength(10);
    expect(at.asked.at(-1)).toEqual(["cancelSignIn", { id: "1" }]);
  });

  test("the browser answers while the paste is checked -> the sign-in ends", async () => {
    const at = await opened({ input: () => "code", answers: { pasteSignIn: () => never } });
    at.end(OK);
    await at.done;
    expect(withoutLink(at)).toEqual([SIGNED_IN]);
  });
});

describe("a question of the worker", () => {
  const issuer = {
    step: "ask",
    question: { about: "issuer", issuer: "https://b.test", text: "It says b." },
  } as const;
  const endpoints = {
    step: "ask",
    question: { about: "endpoints", endpoints: "b c", text: "The code goes to c." },
  } as const;
  const pi = { step: "ask", question: { about: "pi", text: "Pi is signed in." } } as const;

  test("all, with a yes each -> all answers are in the last request", async () => {
    const steps: SignInStep[] = [pi, issuer, endpoints, { step: "renewed", id: "1" }];
    const at = signing({
      select: (_title, choices) => choices[1],
      answers: { signIn: () => steps.shift() },
    });
    const done = at.signIns.byUser("linear");
    await settled();
    at.end(OK);
    await done;
    expect(at.dialogs.map(({ title, message }) => [title, message])).toEqual([
      ["Take over Pi's sign-in to linear?\nPi is signed in.", undefined],
      ["Sign in to linear with this authorization server?\nIt says b.", undefined],
      ["Sign in to linear at the page of another server?\nThe code goes to c.", undefined],
    ]);
    expect(at.asked.map(([, params]) => params)).toEqual([
      { server: "linear" },
      { server: "linear", agreed: { fromPi: true } },
      { server: "linear", agreed: { fromPi: true, issuer: "https://b.test" } },
      { server: "linear", agreed: { fromPi: true, issuer: "https://b.test", endpoints: "b c" } },
    ]);
  });

  it.each([TRUST[0], "yes", "Yes", undefined])(
    "about another issuer or another page, answered with %j -> nothing more is asked of the worker",
    async (answer) => {
      for (const question of [issuer, endpoints]) {
        const at = signing({
          select: () => answer,
          answers: { signIn: () => question },
        });
        await at.signIns.byUser("linear");
        expect(at.asked).toEqual([signIn]);
        expect(at.notices).toEqual([["linear: the sign-in is cancelled.", "info"]]);
      }
    },
  );

  test("about another page -> the answer that Enter gives at once is no", async () => {
    const at = signing({ select: (_title, choices) => choices[0], answers: { signIn: () => endpoints } });
    await at.signIns.byUser("linear");
    expect(at.asked).toEqual([signIn]);
  });

  test("about Pi's sign-in -> the answer that Enter gives at once takes nothing over", async () => {
    const steps: SignInStep[] = [pi, { step: "renewed", id: "1" }];
    const at = signing({ select: (_title, choices) => choices[0], answers: { signIn: () => steps.shift() } });
    void at.signIns.byUser("linear");
    await settled();
    expect(at.asked[1]).toEqual(["signIn", { server: "linear", agreed: { fromPi: false } }]);
  });

  test("about Pi's sign-in, with a no -> the browser comes next", async () => {
    const steps: SignInStep[] = [pi, OPEN];
    const at = signing({ answers: { signIn: () => steps.shift() } });
    await at.signIns.byUser("linear");
    expect(at.asked[1]).toEqual(["signIn", { server: "linear", agreed: { fromPi: false } }]);
    expect(at.dialogs.map(({ method }) => method)).toEqual(["select", "input"]);
  });

  test("again and again -> it ends", async () => {
    const at = signing({ select: () => TRUST[1], answers: { signIn: () => issuer } });
    await at.signIns.byUser("linear");
    expect(at.dialogs).toHaveLength(5);
    expect(at.notices).toEqual([[expect.stringContaining("the same question again"), "error"]]);
  });
});

describe("several sign-ins", () => {
  test("two servers -> one dialog after the other; the same server twice -> one sign-in", async () => {
    const servers = ["linear", "sentry"].map((name) => makeStatus(name, { signIn: { state: "needed" } }));
    const signInTo = ({ server }: { server: string }): SignInStep => ({ ...OPEN, id: server });
    const at = signing({
      input: () => never,
      answers: { status: () => makeReport({ servers }), signIn: signInTo },
    });
    const done = ["linear", "sentry", "linear"].map((server) => at.signIns.byUser(server));
    await settled();
    expect(at.dialogs).toHaveLength(1);
    expect(["linear", "sentry", "files"].map(at.signIns.isRunning)).toEqual([true, true, false]);
    at.end(OK, "linear");
    await settled();
    expect(at.dialogs).toHaveLength(2);
    at.end(OK, "sentry");
    await Promise.all(done);
    expect(withoutLink(at).length).toBe(2);
    expect(at.asked.map(([, params]) => params)).toEqual([{ server: "linear" }, { server: "sentry" }]);
  });
});

describe("without a name", () => {
  const needing = (...names: string[]) =>
    makeReport({ servers: names.map((name) => makeStatus(name, { signIn: { state: "needed" } })) });

  test("one server needs a sign-in -> that one", async () => {
    const at = signing({ answers: { signIn: begun } });
    await at.signIns.byUser(undefined);
    expect(at.asked[0]).toEqual(signIn);
  });

  test("none -> a sentence", async () => {
    const at = signing({ answers: { status: () => makeReport({ servers: [makeStatus("files")] }) } });
    await at.signIns.byUser(undefined);
    expect(at.notices).toEqual([
      ["No MCP server needs a sign-in or a key. /mcp auth <server> signs in again.", "info"],
    ]);
    expect(at.asked).toEqual([]);
  });

  it.each<[string, unknown, unknown[]]>([
    ["the second one", "b c", [["signIn", { server: "b\nc" }]]],
    ["Escape", undefined, []],
    ["over RPC a name that was not offered", "files", []],
    ["over RPC an object", {}, []],
  ])("several, the user chooses %s -> $1", async (_name, choice, asked) => {
    const at = signing({
      select: () => choice as string,
      answers: { status: () => needing("a", "b\nc"), signIn: () => Promise.reject(new Error("x")) },
    });
    await at.signIns.byUser(undefined);
    expect(at.dialogs).toEqual([
      { method: "select", title: "Sign in to which MCP server?", options: ["a", "b c"] },
    ]);
    expect(at.asked).toEqual(asked);
  });
});

describe("a server that has nothing to sign in to", () => {
  const nothing = new ThreadsError("bad_config", "linear: it offers no sign-in.", {
    data: { reason: "no-sign-in" },
  });

  test.each([
    ["connected", true],
    ["failed", false],
    ["idle", false],
  ] as const)("%s -> a wish for a key, works: %j", async (state, works) => {
    const at = signing({
      answers: {
        status: () => makeReport({ servers: [makeStatus("linear", { state })] }),
        signIn: () => Promise.reject(nothing),
      },
    });
    expect(await at.signIns.byUser("linear")).toMatchObject({ server: "linear", works });
  });
});

describe("a name that is not known", () => {
  test("-> the names that are", async () => {
    const at = signing();
    await at.signIns.byUser("nope");
    expect(at.notices).toEqual([
      ["No server named nope is configured. Configured: linear, files, keyed.", "warning"],
    ]);
    expect(at.asked).toEqual([]);
  });

  test("a project's server that waits for consent -> says so", async () => {
    const questions = [{ server: "docs", hash: "h", question: "docs: x" }];
    const at = signing({ answers: { status: () => ({ ...NEEDING, questions }) } });
    await at.signIns.byUser("docs");
    expect(at.notices).toEqual([
      ["The server docs waits for your consent. /mcp trust asks for it.", "warning"],
    ]);
  });

  test.each([
    ["files: it takes no sign-in.", "files: it takes no sign-in. It is local."],
    ["files is a local program.", "files is a local program. It is local."],
    ["filesystem is gone.", "files: filesystem is gone. It is local."],
  ])("the worker says %j -> the server's name stands once at its start", async (said, told) => {
    const error = new ThreadsError("bad_config", said, { remedy: "It is local." });
    const at = signing({ answers: { signIn: () => Promise.reject(error) } });
    await at.signIns.byUser("files");
    expect(at.notices).toEqual([[told, "error"]]);
  });
});

describe("the end of the worker or of the session", () => {
  test("the worker ends while the dialog is open -> it closes, with one sentence", async () => {
    const at = await opened();
    at.signIns.interrupt();
    await at.done;
    expect(withoutLink(at)).toEqual([[CUT_OFF, "error"]]);
    expect(at.asked).toEqual([signIn]);
  });

  test("the worker ends while it begins -> the same sentence", async () => {
    const at = signing({ answers: { signIn: () => Promise.reject(restarted) } });
    await at.signIns.byUser("linear");
    expect(at.notices).toEqual([[CUT_OFF, "error"]]);
  });

  test("the worker ends while a question is open -> the same sentence; the next worker is asked anew", async () => {
    let answers = 0;
    const at = signing({
      select: () => never,
      answers: {
        signIn: () =>
          ++answers === 1
            ? { step: "ask", question: { about: "pi", text: "x" } }
            : { step: "renewed", id: "2" },
      },
    });
    const done = at.signIns.byUser("linear");
    await settled();
    at.signIns.interrupt();
    await done;
    expect(at.notices).toEqual([[CUT_OFF, "error"]]);
    const again = at.signIns.byUser("linear");
    await settled();
    at.end(OK, "2");
    await again;
    expect(at.notices.at(-1)).toEqual(SIGNED_IN);
  });

  test("the session ends while the dialog is open -> it closes, Pi and the worker are not touched again", async () => {
    const at = await opened();
    const before = at.notices.length;
    at.stop();
    await at.done;
    at.end(OK);
    await settled();
    expect(at.notices).toHaveLength(before);
    expect(at.asked).toEqual([signIn]);
  });

  test("the session ends while a sign-in waits for its turn -> it does not begin", async () => {
    const at = signing({ input: () => never, answers: { signIn: begun } });
    const done = [at.signIns.byUser("linear"), at.signIns.byUser("files")];
    await settled();
    at.stop();
    await Promise.all(done);
    expect(at.asked).toEqual([signIn]);
  });
});

describe("without a UI", () => {
  afterEach(() => vi.restoreAllMocks());
  const two = ["a", "b"].map((name) => makeStatus(name, { signIn: { state: "needed" } }));

  it.each<[string | undefined, StatusReport, string, code: number | undefined]>([
    ["linear", NEEDING, "A sign-in needs a person: run pi and /mcp auth linear.", 1],
    [undefined, NEEDING, "A sign-in needs a person: run pi and /mcp auth linear.", 1],
    [
      undefined,
      makeReport({ servers: two }),
      "MCP servers that need a sign-in: a, b. Run pi and /mcp auth <server>.",
      1,
    ],
    [
      undefined,
      makeReport(),
      "No MCP server needs a sign-in or a key. /mcp auth <server> signs in again.",
      undefined,
    ],
    ["nope", NEEDING, "No server named nope is configured. Configured: linear, files, keyed.", 2],
  ])("%s -> a line that says what to do, and no request: $2, code $3", async (server, report, line, code) => {
    const written = vi.spyOn(console, "error").mockReturnValue();
    const at = signing({ hasUI: false, answers: { status: () => report } });
    expect(await exitCodeOf(() => at.signIns.byUser(server))).toBe(code);
    expect(written.mock.calls).toEqual([[line]]);
    expect([at.asked, at.dialogs]).toEqual([[], []]);
  });
});

describe("a call that fails", () => {
  const needsAuth = new ThreadsError("needs_auth", "linear: it needs a sign-in.");
  const wantsRights = new ThreadsError("needs_auth", "linear: it wants more rights.", {
    data: { reason: "scope-wanted" },
  });
  const statusOf = (state: "connected" | "needs-auth", signInState: "needed" | "signed-in") => () =>
    makeReport({
      servers: [
        makeStatus("linear", {
          state,
          signIn: signInState === "needed" ? { state: "needed" } : { state: "signed-in", renews: true },
        }),
      ],
    });
  const forCall = (at: Signing, failure: unknown = needsAuth, signal?: AbortSignal) =>
    at.signIns.forCall("linear", failure, signal);

  test("for want of a sign-in -> the dialog; the calls wait for one sign-in and may be repeated", async () => {
    const at = signing({ input: () => never, answers: { signIn: begun } });
    const calls = Array.from({ length: 20 }, () => forCall(at));
    await settled();
    expect(at.dialogs).toHaveLength(1);
    at.end(OK);
    expect(new Set(await Promise.all(calls))).toEqual(new Set([true]));
    expect(at.asked).toEqual([signIn]);
  });

  test("the user cancels -> the error stands, and the next call asks nobody; /mcp auth does", async () => {
    const answers = { signIn: begun };
    const at = signing({ input: () => undefined, answers });
    expect(await forCall(at)).toBe(false);
    expect(await forCall(at)).toBe(false);
    expect(at.dialogs).toHaveLength(1);
    const done = at.signIns.byUser("linear");
    await done;
    expect(at.dialogs).toHaveLength(2);
  });

  test("the user signs in after all -> later calls begin a sign-in again", async () => {
    const answers: unknown[] = [undefined, never, never];
    const at = signing({ input: () => answers.shift(), answers: { signIn: begun } });
    expect(await forCall(at)).toBe(false);
    const done = at.signIns.byUser("linear");
    await settled();
    at.end(OK);
    await done;
    const call = forCall(at);
    await settled();
    at.end(OK);
    expect(await call).toBe(true);
    expect(at.dialogs).toHaveLength(3);
  });

  test("the call is aborted -> it waits no more, and the sign-in goes on", async () => {
    const at = signing({ input: () => never, answers: { signIn: begun } });
    const abort = new AbortController();
    const call = forCall(at, needsAuth, abort.signal);
    await settled();
    abort.abort();
    expect(await call).toBe(false);
    expect(at.signIns.isRunning("linear")).toBe(true);
    expect(at.asked).toEqual([signIn]);
    at.end(OK);
    await settled();
    expect(withoutLink(at)).toEqual([SIGNED_IN]);
  });

  it.each<[string, unknown, () => unknown, boolean]>([
    ["another error", new ThreadsError("call_timeout", "late"), statusOf("needs-auth", "needed"), false],
    ["a foreign error", new Error("x"), statusOf("needs-auth", "needed"), false],
    [
      "a server that takes no sign-in",
      needsAuth,
      () => makeReport({ servers: [makeStatus("linear")] }),
      false,
    ],
    ["a server that is gone", needsAuth, () => makeReport(), false],
    ["no worker", needsAuth, () => Promise.reject(restarted), false],
    ["another call has signed in meanwhile", needsAuth, statusOf("connected", "signed-in"), true],
  ])("%s -> no sign-in; the call is repeated: $2", async (_name, failure, status, repeated) => {
    const at = signing({ answers: { status } });
    expect(await forCall(at, failure)).toBe(repeated);
    expect(at.asked).toEqual([]);
    expect(at.notices).toEqual([]);
  });

  test("a connected server wants more rights -> another sign-in", async () => {
    const at = signing({
      input: () => never,
      answers: { signIn: begun, status: statusOf("connected", "signed-in") },
    });
    const call = forCall(at, wantsRights);
    await settled();
    at.end(OK);
    expect(await call).toBe(true);
  });

  test("without a UI -> the error stands", async () => {
    const at = signing({ hasUI: false });
    expect(await forCall(at)).toBe(false);
    expect(at.asked).toEqual([]);
  });
});
