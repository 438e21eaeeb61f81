/**
 * Owns: the contracts with other extensions (docs/other-programs.md) in the real Pi, with a real second extension: the status event,
 * and the approval event with each verdict.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { answering, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, fixtureServer, home, model, once, root } from "./support.ts";

const OTHER = join(root, "test/fixtures/other-extension.mjs");
const shapes = fixtureServer("shapes.mjs", { SECRET: "very-secret-value" });

interface Line {
  status?: {
    version: number;
    tools: number;
    waiting: string[];
    servers: Record<string, unknown>[];
  };
  isFrozen?: boolean;
  [key: string]: unknown;
}

const recorded = async (file: string): Promise<Line[]> =>
  (await readFile(file, "utf8").catch(() => ""))
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);

type Others = Opened & { lines(): Promise<Line[]> };

async function opened(files: Record<string, unknown> = {}): Promise<Others> {
  const at = await home({
    trusted: true,
    mcp: {
      mcpServers: {
        s: { ...shapes, approve: { "*": "ask", measure: "deny" }, directTools: true },
        gone: { url: "http://user:very-secret-value@127.0.0.1:1/mcp?key=very-secret-value" },
        off: { ...shapes, enabled: false },
      },
    },
    files,
  });
  const record = join(at.dir, "record.jsonl");
  const pi = await open({ at, extensions: [ENTRY, OTHER], env: { OTHER_RECORD: record } });
  return { ...pi, lines: () => recorded(record) };
}

/** A server of the project waits for a yes. */
const waiting = once(() => opened({ ".mcp.json": { mcpServers: { theirs: fixtureServer("shows.mjs") } } }));
const asking = once(async () => {
  const pi = await opened();
  const isKnown = ({ status }: Line): boolean => status?.tools === 6;
  await expect.poll(async () => (await pi.lines()).some(isKnown), { timeout: PATIENCE_MS }).toBe(true);
  return pi;
});

const search = (q: string) => call("s__search", { q });

describe("status/v1", () => {
  test("servers, states, counts, where from; each change is sent, and no secret is in it", async () => {
    const pi = await waiting();
    const last = async () => (await pi.lines()).findLast(({ status }) => status);
    await expect
      .poll(async () => (await last())?.status?.servers.find(({ name }) => name === "s"), {
        timeout: PATIENCE_MS,
      })
      .toEqual({
        name: "s",
        state: "connected",
        transport: "stdio",
        source: pi.at.mcpFile,
        tools: 6,
        toolsKnown: true,
        resources: 0,
      });
    const { status, isFrozen } = (await last()) ?? {};
    expect(isFrozen).toBe(true);
    expect(status).toMatchObject({ version: 1, tools: 6, waiting: ["theirs"] });
    expect(status?.servers.map(({ name }) => name)).toEqual(["s", "gone", "off"]);
    expect(status?.servers.find(({ name }) => name === "off")).toMatchObject({ state: "disabled", tools: 0 });
    const text = JSON.stringify(await pi.lines());
    expect(text).not.toContain("very-secret-value");
    expect(text).not.toContain("127.0.0.1");
  });

  test("an extension that comes late asks -> the same status at once", async () => {
    const pi = await waiting();
    const before = (await pi.lines()).filter(({ status }) => status);
    await pi.rpc.prompt("/other-status", PATIENCE_MS);
    const after = async () => (await pi.lines()).filter(({ status }) => status).length;
    await expect.poll(after, { timeout: PATIENCE_MS }).toBeGreaterThan(before.length);
  });
});

describe("approval/v1", () => {
  test.each([
    ["allow", "search"],
    ["none+allow", "search"],
    ["changes", "search"],
    ["deny", "another extension of Pi denied it"],
    ["allow+deny", "another extension of Pi denied it"],
    ["throws+deny", "another extension of Pi denied it"],
  ])("%s -> %s, and the person is not asked", async (q, outcome) => {
    const pi = await asking();
    const { texts, asked } = await answering(pi, [search(q)]);
    expect([texts[0], asked]).toEqual([expect.stringContaining(outcome), 0]);
    if (outcome === "search") expect(texts[0]).toBe(`search ${JSON.stringify({ q })}`);
    expect(await pi.lines()).toContainEqual({ version: 1, server: "s", tool: "search", args: { q } });
  });

  test.each([
    "unclaimed",
    "none",
    "ask",
    "allow+ask",
    "throws",
    "allow+throws",
    "nonsense",
    "late",
    "breaks",
  ])("%s -> the person is asked", async (q) => {
    const pi = await asking();
    const { texts, titles } = await answering(pi, [search(q)], "No");
    expect(titles).toEqual([`Run search of the MCP server s?\nq: ${JSON.stringify(q)}`]);
    expect(texts[0]).toContain("the user said no");
  });

  test("a claim after the event counts for nothing; a denied tool asks no extension", async () => {
    const pi = await asking();
    await expect.poll(async () => JSON.stringify(await pi.lines())).toContain('"late":false');
    const { texts, asked } = await answering(pi, [call("s__measure", { q: "allow" })]);
    expect([texts[0], asked]).toEqual([expect.stringContaining('a rule of "approve" denies it'), 0]);
    expect(JSON.stringify(await pi.lines())).not.toContain('"tool":"measure"');
  });

  test("the run is stopped while an extension thinks -> the call ends", async () => {
    const pi = await asking();
    const run = pi.prompt(search("hangs"));
    await expect.poll(async () => JSON.stringify(await pi.lines())).toContain('"q":"hangs"');
    await pi.rpc.request({ type: "abort" });
    await run;
    const { texts } = await answering(pi, [search("allow")]);
    expect(texts[0]).toBe('search {"q":"allow"}');
  });

  test("print mode -> an extension may allow what nobody else can; without a verdict it is refused as ever", {
    tags: "thorough",
  }, async () => {
    const at = await home({
      mcp: { mcpServers: { s: { ...shapes, approve: "always", directTools: true } } },
    });
    const scripted = await model([
      { toolCalls: [...search("allow").toolCalls, ...search("none").toolCalls] },
      { text: "ok" },
    ]);
    const env = { OTHER_RECORD: join(at.dir, "record.jsonl") };
    await runPrint({ home: at, model: scripted, extensions: [ENTRY, OTHER], prompt: "go", env });
    const last = scripted.requests.at(-1);
    const [allowed, refused] = last ? toolResultTexts(last) : [];
    expect(allowed).toBe('search {"q":"allow"}');
    expect(refused).toContain("no one can be asked in this mode of Pi");
  });
});
