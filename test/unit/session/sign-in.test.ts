/** Owns: a sign-in within a session: by `/mcp auth`, by a call, and beside crashes, the end and other dialogs. */
import { expect, it, test } from "vitest";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../../src/shared/protocol/session.ts";
import type { MadeServer } from "../make-catalog.ts";
import { makeReport, makeStatus } from "../server-status.ts";
import { settled } from "../settled.ts";
import { type Opened, openSession, planned } from "./support.ts";

const OWN: MadeServer = { name: "own", tools: [{ tool: "work" }] };
const step = {
  step: "open",
  id: "7",
  url: "https://auth.example.com/authorize",
  redirectUri: "http://127.0.0.1:5000/callback",
  codeGoesTo: "auth.example.com",
  browser: "none",
  listens: true,
  endsInMs: 300_000,
};
const needsAuth = new ThreadsError("needs_auth", "own: it needs a sign-in.", {
  remedy: "Run pi and /mcp auth own.",
});
const needing = makeStatus("own", {
  state: "needs-auth",
  signIn: { state: "needed" },
  error: toWireError(needsAuth),
});
const result = { content: [{ type: "text" as const, text: "done" }], isError: false, durationMs: 3 };
const SIGNED_IN = ["own: signed in, 2 tools.", "info"];
const end: WorkerEvent = {
  type: "sign-in",
  id: "7",
  server: "own",
  result: { ok: true, tools: 2 },
};

/** A session whose server refuses calls until its sign-in has ended, and whose dialog nobody answers. */
const refusing = async (autoAuth: boolean, options: { hasUI?: boolean } = {}): Promise<Opened> => {
  let refusals = 1;
  const at = await openSession({
    snapshot: [OWN],
    input: () => new Promise(() => undefined),
    answers: {
      status: () => makeReport({ servers: [needing] }),
      signIn: () => step,
      callTool: () => (refusals-- > 0 ? Promise.reject(needsAuth) : result),
    },
    ...options,
  });
  at.send({ ...planned({ servers: [needing] }), settings: { ...DEFAULT_CATALOG_SETTINGS, autoAuth } });
  return at;
};
const call = ({ pi }: Opened, signal?: AbortSignal) =>
  pi.tools.get("own__work")?.execute("1", {}, signal, undefined, {} as never);
const methods = ({ runtimes }: Opened): unknown[] => runtimes[0]?.asked.map(([method]) => method) ?? [];

test("/mcp auth -> the dialog; its end comes as an event, with one line", async () => {
  const at = await refusing(false);
  const done = at.session.signIn("own");
  await settled();
  expect(at.dialogs).toMatchObject([{ method: "input" }]);
  // The server connects before the sign-in ends: the line of the sign-in says both.
  at.send({ type: "server", status: makeStatus("own") });
  at.send(end);
  await done;
  expect(at.notices.at(-1)).toEqual(SIGNED_IN);
  expect(at.notices.map(([text]) => text).join()).not.toMatch(/works now|is signed in/);
});

test("autoAuth, a call that needs it -> the dialog; then the call is sent once more", async () => {
  const at = await refusing(true);
  const answer = call(at);
  await settled();
  expect(at.dialogs).toMatchObject([{ method: "input" }]);
  at.send(end);
  expect(await answer).toMatchObject({ content: result.content });
  expect(methods(at)).toEqual(["callTool", "status", "signIn", "callTool"]);
});

test("autoAuth, and the server refuses the call again -> the error stands, without another dialog", async () => {
  const at = await refusing(true);
  at.answers.callTool = () => Promise.reject(needsAuth);
  const answer = call(at);
  await settled();
  at.send(end);
  expect(await answer).toMatchObject({ isError: true, details: { code: "needs_auth" } });
  expect(methods(at)).toEqual(["callTool", "status", "signIn", "callTool"]);
});

test("autoAuth, a call that had begun when the sign-in was refused -> never sent again, and no dialog", async () => {
  const at = await refusing(true);
  const begun = new ThreadsError("call_rejected", needsAuth.message, { data: { reason: "not-signed-in" } });
  at.answers.callTool = () => Promise.reject(begun);
  expect(await call(at)).toMatchObject({ isError: true, details: { code: "call_rejected" } });
  expect(methods(at)).toEqual(["callTool"]);
  expect(at.dialogs).toEqual([]);
});

test("autoAuth, and the call is aborted -> it ends at once with its error; the dialog stays", async () => {
  const at = await refusing(true);
  const abort = new AbortController();
  const answer = call(at, abort.signal);
  await settled();
  abort.abort();
  expect(await answer).toMatchObject({ isError: true, details: { code: "needs_auth" } });
  expect(methods(at)).toEqual(["callTool", "status", "signIn"]);
  at.send(end);
  await settled();
  expect(at.notices.at(-1)).toEqual(SIGNED_IN);
});

it.each<[string, boolean, { hasUI?: boolean }]>([
  ["autoAuth is off", false, {}],
  ["there is no UI", true, { hasUI: false }],
])("%s -> the error stands and says what to do", async (_name, autoAuth, options) => {
  const at = await refusing(autoAuth, options);
  const answer = await call(at);
  expect(answer).toMatchObject({ isError: true, details: { code: "needs_auth" } });
  expect(JSON.stringify(answer)).toContain("Run pi and /mcp auth own.");
  expect(methods(at)).toEqual(["callTool"]);
  expect(at.dialogs).toEqual([]);
});

test("the worker crashes while the dialog is open -> two notices, and the call ends", async () => {
  const at = await refusing(true);
  const answer = call(at);
  await settled();
  at.runtimes[0]?.options.onCrash({ reason: "exit code 7", givenUp: false });
  expect(await answer).toMatchObject({ isError: true, details: { code: "needs_auth" } });
  await expect
    .poll(() =>
      at.notices
        .slice(-2)
        .map(([text]) => text)
        .sort(),
    )
    .toEqual([
      expect.stringContaining("The MCP connection worker ended unexpectedly"),
      expect.stringContaining("own: the sign-in was cut off"),
    ]);
});

test("the session ends while the dialog is open -> the call and the command end, without a notice", async () => {
  const at = await refusing(true);
  const both = Promise.all([call(at), at.session.signIn("own")]);
  await settled();
  const before = at.notices.length;
  await at.session.stop();
  expect((await both)[0]).toMatchObject({ isError: true });
  expect(at.notices).toHaveLength(before);
});

test("a lazy server that nobody called needs a sign-in -> no notice; after a call -> one", async () => {
  const at = await refusing(false);
  const tell = (): void => at.send({ type: "server", status: needing });
  tell();
  await settled();
  expect(at.notices).toEqual([]);
  await call(at);
  tell();
  tell();
  await settled();
  expect(at.notices).toEqual([["MCP server own needs a sign-in: /mcp auth own", "warning"]]);
});

test("a question about consent comes while the dialog is open -> it waits for its turn", async () => {
  const at = await refusing(false);
  const done = at.session.signIn("own");
  await settled();
  at.send(planned({ questions: [{ server: "docs", hash: "h", question: "docs: x" }] }));
  await settled();
  expect(at.dialogs).toHaveLength(1);
  at.send(end);
  await done;
  await settled();
  expect(at.dialogs).toMatchObject([{ method: "input" }, { method: "select" }]);
});

test("/mcp logout -> no notice that the server needs a sign-in, until it has connected once more", async () => {
  const at = await openSession({
    snapshot: [OWN],
    answers: { signOut: () => ({ text: "own is signed out." }) },
  });
  at.send(planned({ servers: [makeStatus("own", { lifecycle: "eager" })] }));
  const needed = { ...needing, lifecycle: "eager" as const };
  await at.session.ask("signOut", { server: "own" });
  at.send({ type: "server", status: needed });
  await settled();
  expect(at.notices).toEqual([]);
  const signIn = { state: "signed-in", renews: true } as const;
  at.send({ type: "server", status: makeStatus("own", { lifecycle: "eager", signIn }) });
  at.send({ type: "server", status: needed });
  await settled();
  expect(at.notices.map(([text]) => text)).toEqual([
    "MCP server own is signed in.",
    "MCP server own needs a sign-in: /mcp auth own",
  ]);
});
