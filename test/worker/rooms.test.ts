/** Owns: servers with a sandbox or a smaller environment in the real connection worker: start, calls, edits, sharing, failures. */
import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ServerStatus } from "../../src/shared/protocol/session.ts";
import { endHub } from "../support/end-hub.ts";
import { configure, fixture, type Started, start, textOf } from "./support.ts";

const tries = (more: Record<string, unknown> = {}, env: Record<string, string> = {}) =>
  fixture("tries.mjs", env, more);

const result = async (at: Started, server: string, code: string): Promise<string> =>
  textOf(await at.call(server, "work", { code }));
const secretOf = ({ agentDir }: Started): string =>
  `return fs.readFileSync(${JSON.stringify(join(agentDir, "auth.json"))}, "utf8")`;

test("a server in a sandbox -> is called; does not read Pi's keys, has a folder of its own; an edit takes it out", async () => {
  const at = await start({ s: tries({ sandbox: true }), t: tries() });
  await writeFile(join(at.agentDir, "auth.json"), "the keys");
  const { servers } = await at.runtime.ask("status", {});
  expect(servers.map(({ name, isSandboxed }) => [name, isSandboxed])).toEqual([
    ["s", true],
    ["t", undefined],
  ]);
  expect(await result(at, "t", secretOf(at))).toBe('"the keys"');
  expect(await result(at, "s", secretOf(at))).toBe("ENOENT");
  const store = `fs.mkdirSync(process.env.XDG_DATA_HOME, { recursive: true }); fs.writeFileSync(process.env.XDG_DATA_HOME + "/x", "kept"); return process.env.XDG_DATA_HOME`;
  const folder = JSON.parse(await result(at, "s", store)) as string;
  expect(folder.startsWith(join(at.agentDir, "mcp-rooms", "s-"))).toBe(true);
  await access(join(folder, "x"));

  const since = at.events.length;
  await configure(at, { s: tries({ sandbox: false }), t: tries() });
  expect(await at.event("notice", () => true, since)).toMatchObject({ text: "mcp.json: ~ s (sandbox)" });
  expect(await result(at, "s", secretOf(at))).toBe('"the keys"');
  await configure(at, { s: tries({ sandbox: { read: ["~"] } }), t: tries() });
  await at.event("notice", () => true, since + 1);
});

test("the setting puts every local server into a sandbox; sessions share one there, too", async () => {
  const at = await start({ s: tries({ shared: true }) });
  await writeFile(join(at.agentDir, "auth.json"), "the keys");
  const text = { settings: { sandbox: true }, mcpServers: { s: tries({ shared: true }) } };
  const since = at.events.length;
  await writeFile(join(at.agentDir, "mcp.json"), JSON.stringify(text));
  await at.event("notice", () => true, since);
  expect(await result(at, "s", secretOf(at))).toBe("ENOENT");
  const isShared = ({ status }: { status: ServerStatus }) =>
    status.name === "s" && status.sharing?.sessions === 1;
  await at.event("server", isShared, since);
  await at.runtime.stop();
  await endHub(at.agentDir);
});

test("a sandbox that cannot be made -> no start, an error with what to do", async () => {
  const at = await start({
    gone: tries({ sandbox: { write: ["/no/such/folder"] } }),
    divided: { command: "npx -y @model/server", sandbox: true },
  });
  const divided = await at.failedCall("divided", "work");
  expect(divided.message).toBe(
    'divided: the command "npx -y @model/server" was not found: it holds its arguments too.',
  );
  const refused = await at.failedCall("gone", "work");
  expect(refused).toMatchObject({
    code: "spawn_failed",
    message: "gone: its sandbox cannot be made: /no/such/folder, which it should write, does not exist.",
  });
});

test("the doctor tries the sandbox of a named server from inside, and says what is wrong with one that cannot be made", async () => {
  const at = await start({
    s: tries({ sandbox: { hide: [join(process.cwd(), "test")], network: false } }),
    own: tries({ sandbox: true, cwd: "." }),
    gone: tries({ sandbox: { write: ["/no/such/folder"] } }),
    plain: tries(),
  });
  await writeFile(join(at.agentDir, "auth.json"), "the keys");
  const found = async (server: string) =>
    (await at.runtime.ask("diagnose", { server })).findings.filter(({ id }) => id === "sandbox");
  expect(await found("s")).toEqual([
    {
      ...{ id: "sandbox", severity: "ok", server: "s" },
      title: expect.stringMatching(/^Its sandbox holds: \d+ hidden places cannot be read from inside\.$/),
      detail: expect.stringMatching(/^It can write \S*mcp-rooms\S+, \/tmp, and has no network\.$/),
    },
  ]);
  expect((await found("own"))[0]?.detail).toContain(at.cwd);
  expect(await found("gone")).toMatchObject([
    { severity: "error", title: expect.stringMatching(/^Its sandbox cannot be made: .* does not exist\.$/) },
  ]);
  expect(await found("plain")).toEqual([]);
});

test("inheritEnv -> what the server gets of the environment", async () => {
  process.env.PMT_ROOM_SECRET = "of the session";
  process.env.PMT_ROOM_OTHER = "other";
  onTestFinished(() => {
    delete process.env.PMT_ROOM_SECRET;
    delete process.env.PMT_ROOM_OTHER;
  });
  const at = await start({
    all: tries(),
    none: tries({ inheritEnv: false }, { OWN: "own" }),
    some: tries({ inheritEnv: ["PMT_ROOM_O*"] }),
    project: tries({ inheritEnv: false, roots: true }),
  });
  const names = ["PMT_ROOM_SECRET", "PMT_ROOM_OTHER", "OWN"];
  const code = `return [${JSON.stringify(names)}.map((name) => process.env[name] ?? null), process.env.PATH !== undefined, process.env.PI_PROJECT_DIR ?? null]`;
  const seen = async (server: string): Promise<unknown> => JSON.parse(await result(at, server, code));
  expect(await seen("all")).toEqual([["of the session", "other", null], true, null]);
  expect(await seen("none")).toEqual([[null, null, "own"], true, null]);
  expect(await seen("some")).toEqual([[null, "other", null], true, null]);
  expect(await seen("project")).toEqual([[null, null, null], true, at.cwd]);
});
