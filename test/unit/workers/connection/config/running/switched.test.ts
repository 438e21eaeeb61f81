/** Owns: servers that the person switches on or off for one session, whatever the files say. */
import { describe, expect, test } from "vitest";
import { put } from "../support.ts";
import { createHome, type Home, open } from "./support.ts";

const server = (more: object = {}) => ({ command: "x", ...more });

async function homeWith(own: object, project?: object): Promise<Home> {
  const home = await createHome();
  await put(home.mcp, JSON.stringify({ mcpServers: own }));
  if (project) await put(home.projectFile, JSON.stringify({ mcpServers: project }));
  return home;
}

describe("a server of the user", () => {
  test("off and on -> it goes and comes, no other server changes, no file is written", async () => {
    const pi = await open(await homeWith({ a: server(), b: server() }));
    await pi.running.switch("a", false);
    expect(pi.runs()).toEqual(["b"]);
    expect(pi.running.now.servers[0]).toMatchObject({ name: "a", isOff: true });
    expect(pi.running.state.off).toEqual(["a"]);
    await pi.running.switch("a", true);
    expect(pi.runs()).toEqual(["a", "b"]);
    expect(pi.accepted().switched).toBeUndefined();
    expect(pi.effects).toEqual(["this session: - a (off)", "this session: + a (enabled)"]);
  });

  test("one that its file disables, on -> it runs, and an edit of another server leaves it so", async () => {
    const home = await homeWith({ a: server({ enabled: false }) });
    const pi = await open(home);
    await pi.running.switch("a", true);
    expect(pi.runs()).toEqual(["a"]);
    await put(home.mcp, JSON.stringify({ mcpServers: { a: server({ enabled: false }), b: server() } }));
    await pi.settled();
    expect(pi.runs()).toEqual(["a", "b"]);
    await pi.running.switch("a", undefined);
    expect(pi.runs()).toEqual(["b"]);
  });

  test.each(["on", "ask"])(
    "hotReload %s: off while an edit is there -> the edit alone waits or counts",
    async (hotReload) => {
      const home = await homeWith({ a: server(), b: server() });
      const settings = { hotReload };
      await put(home.mcp, JSON.stringify({ mcpServers: { a: server(), b: server() }, settings }));
      const pi = await open(home);
      await put(home.mcp, JSON.stringify({ mcpServers: { a: server(), c: server() }, settings }));
      await pi.settled();
      await pi.running.switch("a", false);
      expect(pi.runs()).toEqual([hotReload === "on" ? "c" : "b"]);
    },
  );

  test("the worker ends -> the next one keeps what was switched; a new session begins with what is off in its transcript", async () => {
    const home = await homeWith({ a: server(), b: server({ enabled: false }), c: server() });
    const pi = await open(home);
    await pi.running.switch("a", false);
    await pi.running.switch("b", true);
    const next = await open(home, { accepted: pi.accepted(), off: ["c"] });
    expect(next.runs()).toEqual(["b", "c"]);
    expect((await open(home, { off: ["c", "gone"] })).runs()).toEqual(["a"]);
    const odd = [1, null, { a: 1 }, "c", ...Array.from({ length: 100_000 }, () => "x")] as string[];
    const pestered = await open(home, { off: odd });
    expect(pestered.runs()).toEqual(["a"]);
    expect(pestered.accepted().switched).toHaveLength(2);
    for (const none of ["c", { c: true }, 7, null] as unknown as string[][])
      expect((await open(home, { off: none })).runs()).toEqual(["a", "c"]);
    expect((await open(home)).runs()).toEqual(["a", "c"]);
  });
});

describe("a server of the project", () => {
  test("off while it waits for consent -> nothing is asked; on again -> the question is back", async () => {
    const pi = await open(await homeWith({}, { p: server() }));
    expect(pi.asked()).toEqual(["p"]);
    await pi.running.switch("p", false);
    expect(pi.asked()).toEqual([]);
    await pi.running.switch("p", true);
    expect(pi.asked()).toEqual(["p"]);
    expect(pi.runs()).toEqual([]);
  });

  test("one that its file disables, on -> it needs the consent that any server of a project needs", async () => {
    const pi = await open(await homeWith({}, { p: server({ enabled: false }) }));
    await pi.running.switch("p", true);
    expect(pi.runs()).toEqual([]);
    expect(pi.asked()).toEqual(["p"]);
  });

  test("one that was agreed to, off and on -> it runs without another question", async () => {
    const pi = await open(await homeWith({}, { p: server() }));
    await pi.running.answer(pi.running.state.questions[0]?.hash ?? "", "allowed");
    await pi.running.switch("p", false);
    await pi.running.switch("p", true);
    expect(pi.runs()).toEqual(["p"]);
    expect(pi.asked()).toEqual([]);
  });

  test("in the place of the user's own server, off -> neither runs", async () => {
    const pi = await open(await homeWith({ p: server() }, { p: server({ args: ["other"] }) }));
    expect(pi.runs()).toEqual(["p"]);
    await pi.running.switch("p", false);
    expect(pi.runs()).toEqual([]);
  });
});
