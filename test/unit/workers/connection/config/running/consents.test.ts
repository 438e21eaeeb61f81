/**
 * Owns: what a project's files, which a model can write, may run: asked once, allowed, refused, put off, remembered
 * across sessions, and asked again after a change; on real files and a real mcp-trust.json, without Pi.
 */
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SessionFacts } from "../../../../../../src/shared/protocol/session.ts";
import { fileStamp } from "../../../../../../src/shared/protocol/values.ts";
import { nodeFiles } from "../../../../../../workers/shared/files/file-system.ts";
import { withLock } from "../../../../../../workers/shared/files/lock.ts";
import {
  answer,
  becomes,
  configOf,
  createHome,
  decisionsOf,
  type Home,
  open,
  put,
  type Recorded,
  server,
} from "./support.ts";

const evil = { evil: server(["evil"]) };

/** A session that runs while a model writes this into .pi/mcp.json, until the edit has been dealt with. */
async function withWritten(
  home: Home,
  servers: Record<string, unknown>,
  over: Partial<SessionFacts> = {},
): Promise<Recorded> {
  const pi = await open(home, over);
  await put(home.projectPi, configOf(servers));
  await pi.settled();
  return pi;
}

/** The next session with the same files. */
async function restarted(home: Home, before: Recorded, over: Partial<SessionFacts> = {}): Promise<Recorded> {
  await before.running.close();
  return open(home, over);
}

describe("a server of .mcp.json", () => {
  async function openShared(over: Partial<SessionFacts> = {}): Promise<[Home, Recorded]> {
    const home = await createHome();
    await put(home.projectFile, configOf({ shared: server(["one"]) }));
    return [home, await open(home, over)];
  }

  test("nobody has answered -> asked for with everything that would run; it does not run", async () => {
    const [home, pi] = await openShared();
    expect(pi.running.state.questions).toMatchObject([
      { server: "shared", question: `shared: x one, from ${home.projectFile}` },
    ]);
    expect(pi.runs()).toEqual([]);
    expect(pi.running.configured("shared")).toMatchObject({ name: "shared" });
    expect((await restarted(home, pi)).asked()).toEqual(["shared"]);
  });

  test("allowed -> it runs, and at the next start unasked; the same answer again -> nothing", async () => {
    const [home, pi] = await openShared();
    const hash = await answer(pi, "shared", "allowed");
    expect(pi.effects).toEqual(["mcp.json: + shared"]);
    await pi.running.answer(hash, "refused");
    expect(await decisionsOf(home)).toEqual(["shared allowed"]);
    const again = await restarted(home, pi);
    expect(again.runs()).toEqual(["shared"]);
    expect(again.asked()).toEqual([]);
  });

  test("allowed, then its command changes -> it stops and is asked for anew, also at the next start", async () => {
    const [home, pi] = await openShared();
    await answer(pi, "shared", "allowed");
    await put(home.projectFile, configOf({ shared: server(["two"]) }));
    await becomes(() => pi.effects.at(-1), "mcp.json: - shared");
    expect(pi.running.state.questions[0]?.question).toContain("x two");
    const again = await restarted(home, pi);
    expect(again.runs()).toEqual([]);
    expect(again.asked()).toEqual(["shared"]);
  });

  test("refused -> it stays away with the reason, at the next start too; asked again on the user's wish", async () => {
    const [home, pi] = await openShared();
    await answer(pi, "shared", "refused");
    const refused = [{ name: "shared", reason: "it was refused; /mcp trust asks again" }];
    expect(pi.running.state).toMatchObject({ questions: [], refused });
    const again = await restarted(home, pi);
    expect(again.running.state).toMatchObject({ questions: [], refused });
    expect(again.log).toContain("shared is not started: it was refused; /mcp trust asks again");
    await again.running.askAgain();
    expect(again.asked()).toEqual(["shared"]);
    await answer(again, "shared", "allowed");
    expect(again.runs()).toEqual(["shared"]);
    expect(await decisionsOf(home)).toEqual(["shared allowed"]);
  });

  test("taken back, and an edit is applied before that is written -> it stops, is asked for, and the next yes counts", async () => {
    const [home, pi] = await openShared();
    await answer(pi, "shared", "allowed");
    const [decided] = pi.running.decisions;
    const written = Promise.withResolvers<void>();
    const { promise: locked, resolve: isLocked } = Promise.withResolvers<void>();
    // Another process writes its own answers for a while.
    const other = withLock(join(home.agentDir, "mcp-trust.json"), { files: nodeFiles }, async () => {
      isLocked();
      await written.promise;
    });
    await locked;
    const takenBack = pi.running.takeBack(decided?.id ?? "");
    await put(home.mcp, configOf({ own: server() }));
    await pi.settled();
    expect([pi.runs(), pi.asked()]).toEqual([["own"], ["shared"]]);
    written.resolve();
    await Promise.all([other, takenBack]);
    expect([pi.runs(), pi.asked()]).toEqual([["own"], ["shared"]]);
    expect(await decisionsOf(home)).toEqual(["shared awaiting"]);
    await answer(pi, "shared", "allowed");
    expect(pi.runs()).toEqual(["own", "shared"]);
  });

  test("taken back while another process holds mcp-trust.json -> it stops before that is written", async () => {
    const [home, pi] = await openShared();
    await answer(pi, "shared", "allowed");
    const written = Promise.withResolvers<void>();
    const { promise: locked, resolve: isLocked } = Promise.withResolvers<void>();
    const other = withLock(join(home.agentDir, "mcp-trust.json"), { files: nodeFiles }, async () => {
      isLocked();
      await written.promise;
    });
    await locked;
    const takenBack = pi.running.takeBack(pi.running.decisions[0]?.id ?? "");
    await becomes(() => pi.effects.at(-1), "mcp.json: - shared");
    expect([pi.runs(), pi.asked()]).toEqual([[], ["shared"]]);
    expect(await decisionsOf(home)).toEqual(["shared allowed"]);
    written.resolve();
    await Promise.all([other, takenBack]);
    expect([pi.runs(), pi.asked()]).toEqual([[], ["shared"]]);
    expect(await decisionsOf(home)).toEqual(["shared awaiting"]);
  });

  test("taken back, and that cannot be written -> it stops, and the person hears of it", async () => {
    const [home, pi] = await openShared();
    await answer(pi, "shared", "allowed");
    const file = join(home.agentDir, "mcp-trust.json");
    await rm(file);
    await mkdir(file);
    await expect(pi.running.takeBack(pi.running.decisions[0]?.id ?? "")).rejects.toMatchObject({
      code: "bad_config",
      remedy: "Your answer holds for this session only.",
    });
    expect([pi.runs(), pi.asked()]).toEqual([[], ["shared"]]);
    expect(pi.running.state.problems).toMatchObject([{ file, severity: "error" }]);
  });

  test("taken back, that cannot be written, and the worker ends -> the next worker asks, until there is an answer", async () => {
    const [home, pi] = await openShared();
    await answer(pi, "shared", "allowed");
    const file = join(home.agentDir, "mcp-trust.json");
    const held = await readFile(file, "utf8");
    await rm(file);
    await mkdir(file);
    await expect(pi.running.takeBack(pi.running.decisions[0]?.id ?? "")).rejects.toThrow();
    await rm(file, { recursive: true });
    await writeFile(file, held);
    const next = await restarted(home, pi, { accepted: pi.accepted() });
    expect([next.runs(), next.asked()]).toEqual([[], ["shared"]]);
    // Another worker knows it as well.
    const third = await restarted(home, next, { accepted: next.accepted() });
    expect([third.runs(), third.asked()]).toEqual([[], ["shared"]]);
    await answer(third, "shared", "allowed");
    expect(third.accepted()).not.toHaveProperty("takenBack");
    expect((await restarted(home, third, { accepted: third.accepted() })).runs()).toEqual(["shared"]);
  });

  test("the file is another one by the time of the answer -> the answer allows nothing, the new one is asked for", async () => {
    const [home, pi] = await openShared();
    const old = pi.running.state.questions[0]?.hash ?? "";
    await put(home.projectFile, configOf({ shared: server(["other"]) }));
    await becomes(() => pi.running.state.questions[0]?.question.includes("x other"), true);
    await pi.running.answer(old, "allowed");
    expect(pi.runs()).toEqual([]);
    expect(await decisionsOf(home)).toEqual([]);
  });

  test("nobody can be asked -> refused with the reason", async () => {
    const [, pi] = await openShared({ canAsk: false });
    const reason = "no one can be asked for consent here";
    expect(pi.running.state).toMatchObject({ questions: [], refused: [{ name: "shared", reason }] });
  });

  test("the project is not trusted -> the file is not read at all", async () => {
    const [home, pi] = await openShared({ projectTrusted: false });
    expect(pi.running.state).toMatchObject({ questions: [], refused: [], problems: [] });
    expect(pi.running.state.files).not.toContain(home.projectFile);
  });

  test("the worker ends after the answer -> the next worker runs it unasked", async () => {
    const [home, pi] = await openShared();
    await answer(pi, "shared", "allowed");
    expect((await restarted(home, pi, { accepted: pi.accepted() })).runs()).toEqual(["shared"]);
  });

  test("the worker ends before the answer -> the next worker takes the answer by the same hash", async () => {
    const [home, pi] = await openShared();
    const hash = pi.running.state.questions[0]?.hash ?? "";
    const next = await restarted(home, pi, { accepted: pi.accepted() });
    await next.running.answer(hash, "allowed");
    expect(next.runs()).toEqual(["shared"]);
  });
});

describe("a model writes .pi/mcp.json", () => {
  test("no answer -> nothing runs, and the next start asks; allowed there -> the start after that runs it unasked", async () => {
    const home = await createHome();
    const pi = await withWritten(home, evil);
    expect(pi.asked()).toEqual(["evil"]);
    expect(pi.runs()).toEqual([]);
    expect(await decisionsOf(home)).toEqual(["evil awaiting"]);
    const second = await restarted(home, pi);
    expect(second.asked()).toEqual(["evil"]);
    expect(second.runs()).toEqual([]);
    await answer(second, "evil", "allowed");
    expect(await decisionsOf(home)).toEqual(["evil allowed"]);
    expect((await restarted(home, second)).runs()).toEqual(["evil"]);
  });

  test("refused -> remembered, nothing runs", async () => {
    const home = await createHome();
    const pi = await withWritten(home, evil);
    await answer(pi, "evil", "refused");
    expect(await decisionsOf(home)).toEqual(["evil refused"]);
    expect((await restarted(home, pi)).running.state).toMatchObject({
      questions: [],
      refused: [{ name: "evil" }],
    });
  });

  test("allowed, then the model writes another command -> asked for again", async () => {
    const home = await createHome();
    const pi = await withWritten(home, evil);
    await answer(pi, "evil", "allowed");
    await put(home.projectPi, configOf({ evil: server(["worse"]) }));
    await becomes(pi.asked, ["evil"]);
    expect(pi.runs()).toEqual([]);
  });

  test("nobody can be asked -> remembered all the same, asked for at the next start", async () => {
    const home = await createHome();
    const pi = await withWritten(home, evil, { canAsk: false });
    expect(pi.running.state.refused).toMatchObject([{ name: "evil" }]);
    expect(await decisionsOf(home)).toEqual(["evil awaiting"]);
    expect((await restarted(home, pi)).asked()).toEqual(["evil"]);
  });

  test("as the last act, before the watcher reports it -> the next start asks", async () => {
    const home = await createHome();
    const pi = await open(home);
    await put(home.projectPi, configOf(evil));
    await pi.running.close();
    expect(await decisionsOf(home)).toEqual(["evil awaiting"]);
    expect((await open(home)).asked()).toEqual(["evil"]);
  });

  test("hotReload off, so that nobody is asked -> the next start asks", async () => {
    const home = await createHome();
    await put(home.mcp, configOf({}, { hotReload: "off" }));
    const pi = await withWritten(home, evil);
    expect(pi.asked()).toEqual([]);
    expect(pi.held).toEqual([]);
    expect(await decisionsOf(home)).toEqual(["evil awaiting"]);
    expect((await restarted(home, pi)).asked()).toEqual(["evil"]);
  });

  test("beside a server that ran from the start -> that one keeps running, only the new one is asked for", async () => {
    const home = await createHome();
    const own = { own: server(["own"]) };
    await put(home.projectPi, configOf(own));
    const pi = await withWritten(home, { ...own, ...evil });
    expect(pi.runs()).toEqual(["own"]);
    expect(pi.asked()).toEqual(["evil"]);
    const again = await restarted(home, pi);
    expect(again.runs()).toEqual(["own"]);
    expect(again.asked()).toEqual(["evil"]);
  });

  test("the worker ends -> the next worker asks for the new server, and runs the first one unasked", async () => {
    const home = await createHome();
    const own = { own: server(["own"]) };
    await put(home.projectPi, configOf(own));
    const pi = await withWritten(home, { ...own, ...evil });
    const hash = pi.running.state.questions[0]?.hash ?? "";
    const next = await restarted(home, pi, { accepted: pi.accepted() });
    expect(next.runs()).toEqual(["own"]);
    expect(next.asked()).toEqual(["evil"]);
    await next.running.answer(hash, "allowed");
    expect(next.runs().sort()).toEqual(["evil", "own"]);
    expect(await decisionsOf(home)).toEqual(["evil allowed"]);
  });

  test("between the start of the session and the first read -> asked for; without an edit it runs unasked", async () => {
    const home = await createHome();
    await put(home.projectPi, configOf(evil));
    const projectFile = fileStamp(await stat(home.projectPi));
    const unchanged = await open(home, { projectFile });
    expect(unchanged.runs()).toEqual(["evil"]);
    await unchanged.running.close();
    await put(home.projectPi, configOf({ evil: server(["written", "meanwhile"]) }));
    const changed = await open(home, { projectFile });
    expect(changed.runs()).toEqual([]);
    expect(changed.asked()).toEqual(["evil"]);
  });
});

test("the user writes .pi/mcp.json while no session runs -> it runs unasked, nothing is remembered", async () => {
  const home = await createHome();
  const before = await open(home);
  await before.running.close();
  await put(home.projectPi, configOf(evil));
  const pi = await open(home);
  expect(pi.runs()).toEqual(["evil"]);
  expect(pi.asked()).toEqual([]);
  expect(await decisionsOf(home)).toEqual([]);
});

describe("mcp-trust.json", () => {
  test("broken -> a problem, nothing of the project runs unasked, the file is kept aside", async () => {
    const home = await createHome();
    await put(home.projectFile, configOf({ shared: server() }));
    await put(home.projectPi, configOf(evil));
    const file = join(home.agentDir, "mcp-trust.json");
    const text = '{"version":1,"consents":[{';
    await writeFile(file, text);
    const pi = await open(home);
    expect(pi.running.state.problems).toMatchObject([
      { file, message: expect.stringMatching(/^no consent in it counts: it is not complete JSON/) },
    ]);
    expect(pi.runs()).toEqual([]);
    expect(pi.asked().sort()).toEqual(["evil", "shared"]);
    const kept = (await readdir(home.agentDir)).filter((name) => name.startsWith("mcp-trust.json."));
    expect(kept).toEqual([expect.stringMatching(/^mcp-trust\.json\.corrupt-/)]);
    expect(await readFile(join(home.agentDir, kept[0] ?? ""), "utf8")).toBe(text);
  });

  test("it cannot be written -> the answer is refused with that reason, and holds for this session", async () => {
    const home = await createHome();
    await put(home.projectFile, configOf({ shared: server() }));
    await mkdir(join(home.agentDir, "mcp-trust.json"));
    const pi = await open(home);
    await expect(answer(pi, "shared", "allowed")).rejects.toMatchObject({
      code: "bad_config",
      remedy: "Your answer holds for this session only.",
    });
    expect(pi.runs()).toEqual(["shared"]);
    expect((await restarted(home, pi)).asked()).toEqual(["shared"]);
  });
});

describe("an envFile of a project's server", () => {
  test("its content changes after the answer -> the server stops and is asked for with the new content", async () => {
    const home = await createHome();
    await put(join(home.cwd, ".env"), "A=1");
    await put(home.projectFile, configOf({ shared: server([], { envFile: ".env" }) }));
    const pi = await open(home);
    await answer(pi, "shared", "allowed");
    expect(pi.runs()).toEqual(["shared"]);
    await put(join(home.cwd, ".env"), "A=1\nNODE_OPTIONS=--require=./evil.cjs");
    await becomes(pi.asked, ["shared"]);
    expect(pi.runs()).toEqual([]);
    expect(pi.running.state.questions[0]?.question).toContain("NODE_OPTIONS=--require=./evil.cjs");
  });

  test("hotReload off -> its change is asked for all the same, an edit of mcp.json keeps waiting", async () => {
    const home = await createHome();
    await put(home.mcp, configOf({}, { hotReload: "off" }));
    await put(join(home.cwd, ".env"), "A=1");
    await put(home.projectFile, configOf({ shared: server([], { envFile: ".env" }) }));
    const pi = await open(home);
    await answer(pi, "shared", "allowed");
    await put(home.mcp, configOf({ added: server() }, { hotReload: "off" }));
    await pi.settled();
    await put(join(home.cwd, ".env"), "PATH=/tmp");
    await becomes(pi.asked, ["shared"]);
    expect(pi.runs()).toEqual([]);
  });
});
