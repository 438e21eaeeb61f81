/** Owns: `"trace": true`: the lines of the file over stdio and HTTP, what they never hold, the file's bound, and disks that take nothing. */
import { mkdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { answerWell, serve } from "../support/http-server.ts";
import {
  createPlace,
  fixture,
  fixtures,
  modernProgram,
  type Place,
  type Started,
  start,
  until,
} from "./support.ts";

const SECRET = "s3cr3t-of-the-test";
const TRACE = "mcp-trace.jsonl";
const MEBIBYTE = 1024 * 1024;

interface Line {
  v: number;
  time: string;
  server: string;
  direction: "in" | "out";
  kind: string;
  id?: number | string;
  method?: string;
  name?: string;
  ms?: number;
  bytes?: number;
  code?: number;
  dropped?: number;
}

const textIn = ({ agentDir }: Started): Promise<string> =>
  readFile(join(agentDir, TRACE), "utf8").catch(() => "");
const linesIn = async (started: Started): Promise<Line[]> =>
  (await textIn(started))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);

/** The lines once one fits: they are written behind the call. */
const linesWith = (started: Started, fits: (line: Line) => boolean): Promise<Line[]> =>
  until(async () => {
    const lines = (await textIn(started)) === "" ? [] : await linesIn(started);
    return lines.some(fits) ? lines : undefined;
  });

test("stdio, also a long result -> requests and answers with names, ids, sizes and times, and nothing of what they hold", async () => {
  const started = await start({
    a: fixture("results.mjs", { SECRET }, { trace: true }),
    b: fixture("results.mjs", {}),
  });
  await started.call("a", "answer", { content: [{ type: "text", text: SECRET }] });
  await started.call("b", "answer", { content: [] });
  await started.call("a", "big", { piece: "word ", times: 200_000 });
  await started.call("a", "fail", { code: -32000, words: 10 }).catch(() => undefined);
  const lines = await linesWith(started, ({ code }) => code === -32000);
  expect(new Set(lines.map(({ server }) => server))).toEqual(new Set(["a"]));
  const requests = lines.filter(({ kind, method }) => kind === "request" && method === "tools/call");
  expect(requests.map(({ direction, name }) => [direction, name])).toEqual([
    ["out", "answer"],
    ["out", "big"],
    ["out", "fail"],
  ]);
  const [, big, fail] = requests.map(({ id }) =>
    lines.find((line) => line.direction === "in" && line.id === id),
  );
  expect(big).toMatchObject({ v: 1, kind: "result", method: "tools/call", ms: expect.any(Number) });
  expect(big?.bytes).toBeGreaterThan(1_000_000);
  expect(fail).toMatchObject({ kind: "error", code: -32000 });
  expect(lines[0]).toMatchObject({ direction: "out", kind: "request", method: "initialize" });
  for (const { time, bytes } of lines) {
    expect(new Date(time).toISOString()).toBe(time);
    expect(bytes).toBeGreaterThan(0);
  }
  const text = await textIn(started);
  for (const held of [SECRET, "word word", "wwwww"]) expect(text).not.toContain(held);
  expect((await stat(join(started.agentDir, TRACE))).mode & 0o777).toBe(0o600);
});

test("HTTP, and 2026-07-28 -> the same", { tags: "thorough" }, async () => {
  const { url } = await serve(answerWell);
  const started = await start({
    web: { url: `${url}?key=${SECRET}`, trace: true },
    modern: { ...modernProgram(), protocol: "2026-07-28", trace: true },
  });
  await started.call("web", "work", {}).catch(() => undefined);
  await started.call("modern", "echo", { text: SECRET });
  const isCall = ({ server, kind, method }: Line): boolean =>
    server === "modern" && kind === "result" && method === "tools/call";
  const lines = await linesWith(started, isCall);
  expect(lines.filter(({ server }) => server === "web").map(({ method }) => method)).toContain("initialize");
  expect(await textIn(started)).not.toContain(SECRET);
});

test("methods, ids and names that a server makes up -> one line each: cleaned, cut, without its secrets", async () => {
  const started = await start({ odd: fixture("odd-words.mjs", { TOKEN: SECRET }, { trace: true }) });
  await started.call("odd", "odd", {});
  const lines = await linesWith(started, ({ kind, method }) => kind === "result" && method === "tools/call");
  const asked = lines.find(({ direction, kind }) => direction === "in" && kind === "request");
  expect(asked?.method).toMatch(/^ask/);
  expect(String(asked?.id)).toMatch(/^id/);
  for (const word of [asked?.method, asked?.id, asked?.name ?? ""])
    expect(String(word).length).toBeLessThan(250);
  const text = await textIn(started);
  expect(text).not.toContain(SECRET);
  expect(text).not.toContain("\u001b");
  expect(text).not.toContain("\u202e");
  expect(text).not.toMatch(/^\{"v":1,"server":"forged"/m);
});

describe("the file", () => {
  const traced = (place?: Place) =>
    start({ odd: fixture("odd-words.mjs", {}, { trace: true, lifecycle: "lazy" }) }, place ? { place } : {});

  test("a server that tells much -> at most 8 MiB and the same before it, and what is left out is counted", {
    tags: "thorough",
  }, async () => {
    // The server connects at the start, and its lines must not fall into the writing of this file.
    const place = await createPlace();
    await writeFile(join(place.agentDir, TRACE), "x".repeat(8 * MEBIBYTE - 10));
    const started = await traced(place);
    await started.call("odd", "many", { count: 20_000 });
    await linesWith(started, ({ kind, method }) => kind === "result" && method === "tools/call");
    expect((await stat(join(started.agentDir, `${TRACE}.1`))).size).toBeLessThanOrEqual(8 * MEBIBYTE);
    expect((await stat(join(started.agentDir, TRACE))).size).toBeLessThan(8 * MEBIBYTE);
    const lines = await linesIn(started);
    const told = lines.filter(({ method }) => method === "notifications/tell").length;
    const left = lines.reduce((sum, { dropped = 0 }) => sum + dropped, 0);
    expect(told + left).toBeGreaterThan(0);
  });

  test("a full disk -> the calls go on and the log says it once; when there is room, whole lines, and how many are missing", async () => {
    const place = await createPlace();
    const workerUrl = pathToFileURL(join(fixtures, "workers", "full-disk.mjs"));
    const odd = fixture("odd-words.mjs", {}, { trace: true, lifecycle: "lazy" });
    const full = join(place.agentDir, "mcp-threads.log.full");
    await mkdir(place.agentDir, { recursive: true });
    await writeFile(full, "");
    const started = await start({ odd }, { place, workerUrl });
    const told = async () =>
      (await started.log()).split("\n").filter((line) => line.includes("odd is not traced: ENOSPC"));
    for (let at = 0; at < 3; at++) await started.call("odd", "many", { count: 20 });
    await until(async () => ((await told()).length > 0 ? true : undefined));
    await rm(full);
    await started.call("odd", "many", { count: 1 });
    const text = await until(async () => {
      const found = await textIn(started);
      return /"dropped":\d/.test(found) ? found : undefined;
    });
    // What the disk has cut stays, and no line is put behind it.
    const isWhole = (line: string): boolean => line.endsWith("}") && JSON.parse(line).v === 1;
    const torn = text.split("\n").filter((line) => line !== "" && !isWhole(line));
    expect(torn.length).toBeGreaterThan(0);
    for (const line of torn) expect(line.split('{"v":1').length).toBeLessThanOrEqual(2);
    expect(await told()).toHaveLength(1);
  });

  test.skipIf(process.platform !== "linux")(
    "a place that takes nothing -> the calls go on, and the log says it once",
    async () => {
      const started = await traced();
      await symlink("/dev/full", join(started.agentDir, TRACE));
      await started.call("odd", "many", { count: 100 });
      await started.call("odd", "many", { count: 100 });
      const log = await until(async () => {
        const text = await started.log();
        return text.includes("is not traced") ? text : undefined;
      });
      expect(log.split("is not traced")).toHaveLength(2);
    },
  );

  test("the doctor says where it is", async () => {
    const started = await traced();
    const { findings } = await started.runtime.ask("diagnose", {});
    expect(findings).toContainEqual(
      expect.objectContaining({
        id: "log",
        severity: "note",
        title: "The messages of odd are traced, without what they hold.",
        file: expect.stringContaining(TRACE),
      }),
    );
  });
});
