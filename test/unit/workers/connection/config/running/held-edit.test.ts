/**
 * Owns: with `hotReload` "ask" and "off", an edit is applied by the user's yes alone, whatever else happens
 * meanwhile; on real files, without Pi.
 */
import { mkdir, rm } from "node:fs/promises";
import { describe, expect, test, vi } from "vitest";
import { editEnabled } from "../../../../../../workers/connection/config/edit/edit.ts";
import { writeOwn } from "../../../../../../workers/connection/session/user-edits.ts";
import {
  answer,
  becomes,
  configOf,
  createHome,
  type Home,
  open,
  put,
  type Recorded,
  server,
} from "./support.ts";

const WAITS = (hotReload: string): string =>
  `an edit of the configuration waits: hotReload is "${hotReload}"`;

const config = (hotReload: string, more: Record<string, unknown> = {}) =>
  configOf({ own: server(["own"]), off: server(["off"], { enabled: false }), ...more }, { hotReload });

const added = { added: server(["added"]) };

async function openWith(hotReload: string, files: Record<string, unknown> = {}): Promise<[Home, Recorded]> {
  const home = await createHome();
  await put(home.mcp, config(hotReload));
  for (const [name, content] of Object.entries(files)) await put(`${home.cwd}/${name}`, content);
  return [home, await open(home)];
}

/** The number of edits that the log calls waiting. */
const waiting = ({ log }: Recorded, hotReload: string): number =>
  log.filter((line) => line === WAITS(hotReload)).length;

/** Edits the user's file and waits until the edit waits. */
async function edit(home: Home, recorded: Recorded, content: unknown, hotReload = "ask"): Promise<string> {
  const before = waiting(recorded, hotReload);
  await put(home.mcp, content);
  await becomes(() => waiting(recorded, hotReload), before + 1);
  return recorded.held.at(-1)?.id ?? "";
}

describe("hotReload ask", () => {
  test("an edit -> announced once with its effect, not applied; yes -> applied; the same yes again -> nothing", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    expect(pi.held).toEqual([{ id, text: "mcp.json: + added" }]);
    expect(pi.runs()).toEqual(["own"]);
    await Promise.all([pi.running.applyHeld(id, true), pi.running.applyHeld(id, true)]);
    await pi.running.applyHeld(id, true);
    expect(pi.effects).toEqual(["mcp.json: + added"]);
    expect(pi.runs()).toEqual(["own", "added"]);
  });

  test("no -> the edit stays where it is, nobody hears of it again, a later yes applies it", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    await pi.running.applyHeld(id, false);
    await pi.settled();
    expect(pi.held).toHaveLength(1);
    expect(pi.runs()).toEqual(["own"]);
    await pi.running.applyHeld(id, true);
    expect(pi.runs()).toEqual(["own", "added"]);
  });

  test.each([
    ["the mended file says ask", "ask", "on"],
    [".pi/mcp.json says ask", "on", "ask"],
  ])(
    "the file is broken at the start, and %s -> the edit that mends it waits",
    async (_, mended, project) => {
      const home = await createHome();
      await put(home.mcp, "{");
      await put(home.projectPi, configOf({}, { hotReload: project }));
      const pi = await open(home);
      const id = await edit(home, pi, config(mended));
      expect(pi.runs()).toEqual([]);
      await pi.running.applyHeld(id, true);
      expect(pi.runs()).toEqual(["own"]);
    },
  );

  test("the user's file is broken, and .pi/mcp.json is edited to say ask -> that waits", async () => {
    const home = await createHome();
    await put(home.mcp, "{");
    const pi = await open(home);
    await put(home.projectPi, configOf({}, { hotReload: "ask", catalog: "off" }));
    await becomes(() => pi.held.length, 1);
    expect(pi.running.now.settings.catalog).toBe("tools");
  });

  test("a yes for an edit that never was -> nothing", async () => {
    const [home, pi] = await openWith("ask");
    await pi.running.applyHeld("none", true);
    await edit(home, pi, config("ask", added));
    await pi.running.applyHeld("none", true);
    expect(pi.effects).toEqual([]);
  });

  test("the file is edited again before the answer -> the old yes does nothing, the whole new edit is announced", async () => {
    const [home, pi] = await openWith("ask");
    const first = await edit(home, pi, config("ask", added));
    const second = await edit(home, pi, config("ask", { ...added, more: server() }));
    expect(second).not.toBe(first);
    expect(pi.held.at(-1)?.text).toBe("mcp.json: + added, + more");
    await pi.running.applyHeld(first, true);
    expect(pi.runs()).toEqual(["own"]);
    await pi.running.applyHeld(second, true);
    expect(pi.runs()).toEqual(["own", "added", "more"]);
  });

  test("toolExposure is put into another order before the answer -> the old yes does nothing, the new edit is announced", async () => {
    const [home, pi] = await openWith("ask");
    const ruled = (toolExposure: object) => config("ask", { added: server(["added"], { toolExposure }) });
    const first = await edit(home, pi, ruled({ "delete_*": "hidden", "*": "direct" }));
    const second = await edit(home, pi, ruled({ "*": "direct", "delete_*": "hidden" }));
    expect(second).not.toBe(first);
    await pi.running.applyHeld(first, true);
    expect(pi.runs()).toEqual(["own"]);
    await pi.running.applyHeld(second, true);
    expect(pi.runs()).toEqual(["own", "added"]);
  });

  test("the edit is undone before the answer -> its question is void, its yes does nothing; made again -> asked again", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    await put(home.mcp, config("ask"));
    await pi.settled();
    await pi.running.applyHeld(id, true);
    expect(pi.held.map((held) => held.id)).toEqual([id, ""]);
    expect(pi.runs()).toEqual(["own"]);
    await put(home.mcp, config("ask", added));
    await pi.settled();
    expect(pi.held.map((held) => held.id)).toEqual([id, "", id]);
  });

  test("the file is written anew with the same effect -> nobody hears of it again, the yes holds", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    await put(home.mcp, { ...config("ask", added), unheard: 1 });
    await pi.settled();
    expect(pi.held).toHaveLength(1);
    await pi.running.applyHeld(id, true);
    expect(pi.runs()).toEqual(["own", "added"]);
    expect(pi.running.state.problems).toMatchObject([{ key: "unheard" }]);
  });

  test("the file is deleted -> its servers run until the yes", async () => {
    const [home, pi] = await openWith("ask");
    await rm(home.mcp);
    await becomes(() => pi.held.map(({ text }) => text), ["mcp.json: - own, - off, settings (hotReload)"]);
    expect(pi.runs()).toEqual(["own"]);
    await pi.running.applyHeld(pi.held[0]?.id ?? "", true);
    expect(pi.runs()).toEqual([]);
  });

  test("the file breaks while an edit waits -> the yes applies what was announced, and the position of the mistake is known", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    await put(home.mcp, "{");
    await pi.settled();
    expect(pi.held).toHaveLength(1);
    await pi.running.applyHeld(id, true);
    expect(pi.runs()).toEqual(["own", "added"]);
    expect(pi.running.state.problems).toMatchObject([
      { file: home.mcp, line: 1, message: expect.stringContaining("not valid JSON") },
    ]);
  });

  test("the setting itself is edited -> the one that runs decides: it waits, and counts from its yes on", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("on"));
    expect(pi.held.at(-1)?.text).toBe("mcp.json: settings (hotReload)");
    await pi.running.applyHeld(id, true);
    await put(home.mcp, config("on", added));
    await becomes(pi.runs, ["own", "added"]);
    await put(home.mcp, config("ask", added));
    await becomes(() => pi.effects.at(-1), "mcp.json: settings (hotReload)");
    await edit(home, pi, config("ask"));
    expect(pi.held.at(-1)?.text).toBe("mcp.json: - added");
    expect(pi.runs()).toEqual(["own", "added"]);
  });
});

test("hotReload off -> nobody hears of the edit and nothing is applied; the next start has it", async () => {
  const [home, pi] = await openWith("off");
  await edit(home, pi, config("off", added), "off");
  expect(pi.held).toEqual([]);
  expect(pi.effects).toEqual([]);
  await pi.running.close();
  expect((await open(home)).runs()).toEqual(["own", "added"]);
});

describe("the user's file is broken at the start, and nothing else says that edits wait", () => {
  const broken = async () => {
    const home = await createHome();
    await put(home.mcp, "{");
    const pi = await open(home);
    return { home, pi, problems: () => pi.running.state.problems.map(({ message }) => message) };
  };

  test("each edit that leaves it broken is told, the edit that mends it applies at once", async () => {
    const { home, pi, problems } = await broken();
    await put(home.mcp, "[]");
    await becomes(problems, ["expected an object, found a list"]);
    expect(pi.running.now.settings).toMatchObject({ hotReload: "ask", sandbox: true });
    await put(home.mcp, config("on"));
    await becomes(pi.runs, ["own"]);
    expect([pi.held, problems()]).toEqual([[], []]);
    expect(pi.running.now.settings).toMatchObject({ hotReload: "on", sandbox: false });
  });

  test.each([
    ["the key of its settings is misspelt", { setings: { hotReload: "on" } }],
    ["its settings are a list", { settings: [] }],
    ["hotReload is misspelt", { settings: { hotReload: "yes" } }],
  ])("not the file, but %s -> the edit that mends it applies at once", async (_what, wrong) => {
    const home = await createHome();
    await put(home.mcp, { ...configOf({ own: server(["own"]) }), ...wrong });
    const pi = await open(home);
    expect(pi.running.now.settings.hotReload).toBe("ask");
    await put(home.mcp, config("on", added));
    await becomes(pi.runs, ["own", "added"]);
    expect([pi.held, pi.running.state.problems]).toEqual([[], []]);
  });

  test("one file has such a mistake, and another one says ask -> the edit that mends it waits", async () => {
    const home = await createHome();
    await put(home.mcp, { ...configOf({}), setings: {} });
    await put(home.projectPi, configOf({}, { hotReload: "ask" }));
    const pi = await open(home);
    await edit(home, pi, config("on", added));
    expect(pi.runs()).toEqual([]);
  });

  test("the key of its settings is misspelt beside an honest off -> the edit that mends it waits", async () => {
    const home = await createHome();
    await put(home.mcp, { ...config("off"), setings: {} });
    const pi = await open(home);
    await edit(home, pi, config("on", added));
    expect(pi.runs()).toEqual(["own"]);
  });

  test("it is deleted -> that applies at once", async () => {
    const { home, pi, problems } = await broken();
    await rm(home.mcp);
    await becomes(problems, []);
    expect(pi.running.now.settings).toMatchObject({ hotReload: "on", sandbox: false });
  });

  test("another file is edited meanwhile -> that waits, and applies with the edit that mends", async () => {
    const { home, pi } = await broken();
    await put(home.projectPi, configOf({}, { catalog: "off" }));
    await becomes(() => pi.held.length, 1);
    expect(pi.running.now.settings.catalog).toBe("tools");
    await put(home.mcp, config("on"));
    await becomes(pi.runs, ["own"]);
    expect(pi.running.now.settings.catalog).toBe("off");
    await pi.running.applyHeld(pi.held[0]?.id ?? "", true);
    expect(pi.runs()).toEqual(["own"]);
  });
});

type Happening = [string, (pi: Recorded, home: Home) => Promise<unknown>, runs: string[]];
const HAPPENINGS: Happening[] = [
  [
    "another extension registers a server",
    ({ running }) => running.register([{ name: "ext", config: server(), extensionPath: "/ext.mjs" }]),
    ["ext", "own"],
  ],
  [
    "the user enables another server from within Pi",
    async ({ running }, home) => {
      const text = JSON.stringify(config(running.now.settings.hotReload)).replace("false", "true");
      await put(home.mcp, text.replace('"mcpServers":{', '"mcpServers":{"added":{"command":"x"},'));
      await running.written({ file: home.mcp, text: () => text });
    },
    ["own", "off"],
  ],
  ["the user wants to be asked again", ({ running }) => running.askAgain(), ["own"]],
  ["the user allows a server of the project", (pi) => answer(pi, "shared", "allowed"), ["own", "shared"]],
];

describe.each(["ask", "off"])("hotReload %s, an edit waits", (hotReload) => {
  test.each(HAPPENINGS)("%s -> that is done, the edit keeps waiting", async (_, happen, runs) => {
    const files = { ".mcp.json": configOf({ shared: server(["shared"]) }) };
    const [home, pi] = await openWith(hotReload, files);
    await edit(home, pi, config(hotReload, added), hotReload);
    await happen(pi, home);
    expect(pi.runs().sort()).toEqual(runs.toSorted());
    await pi.settled();
    expect(pi.runs()).not.toContain("added");
    expect(pi.held.map(({ text }) => text).filter((text) => !text.includes("+ added"))).toEqual([]);
    expect(pi.held.length > 0).toBe(hotReload === "ask");
  });
});

describe("hotReload ask, an edit waits", () => {
  test("the user makes two changes from within Pi at once -> both hold, the edit keeps waiting", async () => {
    const [home, pi] = await openWith("ask");
    await edit(home, pi, config("ask", added));
    const { promise: both, resolve } = Promise.withResolvers<void>();
    const written = pi.running.written.bind(pi.running);
    let writes = 0;
    // Each has written the file before either is applied.
    vi.spyOn(pi.running, "written").mockImplementation(async (own) => {
      if (++writes === 2) resolve();
      await both;
      return written(own);
    });
    const set = (name: string, enabled: boolean) =>
      writeOwn(pi.running, home.mcp, (text) => editEnabled(text, name, enabled), { server: name });
    await Promise.all([set("own", false), set("off", true)]);
    expect(pi.runs()).toEqual(["off"]);
  });

  test("another extension registers a server, then the yes -> both run", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    await pi.running.register([{ name: "ext", config: server(), extensionPath: "/ext.mjs" }]);
    await pi.running.applyHeld(pi.held.at(-1)?.id ?? "", true);
    expect(pi.runs().sort()).toEqual(["added", "ext", "own"]);
    expect(pi.held).toEqual([{ id, text: "mcp.json: + added" }]);
  });

  test("the user writes that very text in the editor -> it applies, nobody is asked", async () => {
    const [home, pi] = await openWith("off");
    await edit(home, pi, config("off", added), "off");
    const text = JSON.stringify(config("off", added));
    await pi.running.written({ file: home.mcp, text: () => text });
    expect(pi.runs()).toEqual(["own", "added"]);
    expect(pi.held).toEqual([]);
  });

  test("the user writes hotReload on in the editor -> that applies, and a yes for the old edit does nothing", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    const text = JSON.stringify(config("on", { more: server() }));
    await put(home.mcp, text);
    await pi.running.written({ file: home.mcp, text: () => text });
    expect(pi.runs()).toEqual(["own", "more"]);
    await pi.running.applyHeld(id, true);
    expect(pi.runs()).toEqual(["own", "more"]);
  });

  test("the session ends and a new one starts -> the edit counts, it was there at the start", async () => {
    const [home, pi] = await openWith("ask");
    await edit(home, pi, config("ask", added));
    await pi.running.close();
    expect((await open(home)).runs()).toEqual(["own", "added"]);
  });
});

describe("the worker ends while an edit waits", () => {
  test("ask -> the next worker runs what ran and announces the edit again, under the same id", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    await pi.running.close();
    const next = await open(home, { accepted: pi.accepted() });
    expect(next.runs()).toEqual(["own"]);
    await becomes(() => next.held, [{ id, text: "mcp.json: + added" }]);
    await next.running.applyHeld(id, true);
    expect(next.runs()).toEqual(["own", "added"]);
  });

  test("ask, the file is edited again after the crash -> the old yes does nothing, the new edit is announced", async () => {
    const [home, pi] = await openWith("ask");
    const id = await edit(home, pi, config("ask", added));
    await pi.running.close();
    const next = await open(home, { accepted: pi.accepted() });
    await becomes(() => next.held.length, 1);
    await edit(home, next, config("ask", { more: server() }));
    await next.running.applyHeld(id, true);
    expect(next.runs()).toEqual(["own"]);
    expect(next.held.at(-1)?.text).toBe("mcp.json: + more");
  });

  test("off -> the next worker runs what ran, nobody hears of the edit", async () => {
    const [home, pi] = await openWith("off");
    await edit(home, pi, config("off", added), "off");
    await pi.running.close();
    const next = await open(home, { accepted: pi.accepted() });
    await becomes(() => waiting(next, "off"), 1);
    expect(next.runs()).toEqual(["own"]);
    expect(next.held).toEqual([]);
  });

  test("the edit created a file -> the next worker takes the file for missing until the yes", async () => {
    const [home, pi] = await openWith("ask");
    await put(home.projectFile, configOf({ own: { idleTimeout: 5 } }));
    await becomes(() => pi.held.map(({ text }) => text), ["mcp.json: ~ own (idleTimeout, file)"]);
    await pi.running.close();
    expect(pi.accepted().texts).toContainEqual([home.projectFile, undefined]);
    const next = await open(home, { accepted: pi.accepted() });
    expect(next.running.now.servers[0]).toMatchObject({ name: "own", idleTimeoutMinutes: undefined });
    await becomes(() => next.held.length, 1);
  });

  test("the file was broken when the worker ended -> the next worker runs the last whole text", async () => {
    const [home, pi] = await openWith("ask");
    await put(home.mcp, "{");
    await pi.settled();
    await pi.running.close();
    expect((await open(home, { accepted: pi.accepted() })).runs()).toEqual(["own"]);
  });

  test.each([
    ["is broken", (file: string) => put(file, "{")],
    ["cannot be read", (file: string) => mkdir(file)],
  ])(
    "the user's file %s from the start -> so it is for the next worker, whose first plan is as strict",
    async (_, spoil) => {
      const home = await createHome();
      await spoil(home.mcp);
      const pi = await open(home);
      await pi.running.close();
      await rm(home.mcp, { recursive: true });
      await put(home.mcp, config("on"));
      const next = await open(home, { accepted: structuredClone(pi.accepted()) });
      expect(next.first).toMatchObject({
        settings: { after: { sandbox: true, hotReload: "ask" } },
        servers: [],
      });
      await becomes(next.runs, ["own"]);
    },
  );

  test("on -> no text is kept, the files on the disk count", async () => {
    const [home, pi] = await openWith("on");
    expect(pi.accepted()).toEqual({ servers: [] });
    await pi.running.close();
    await put(home.mcp, config("on", added));
    expect((await open(home, { accepted: pi.accepted() })).runs()).toEqual(["own", "added"]);
  });
});
