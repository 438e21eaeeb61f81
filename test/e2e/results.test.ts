/** Owns: tests of the results of calls in the real Pi: every kind of result of server-everything, and each setting. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { toolResultTexts } from "../support/model.ts";
import { extensionErrors, notices, type RpcToolEnd } from "../support/rpc-events.ts";
import { removeFolder } from "../support/temp-folder.ts";
import { type InTurn, inTurn } from "./in-turn.ts";
import { type Opened, PATIENCE_MS } from "./rpc-support.ts";
import { call, fixtureServer, once, SERVERS, searchFor } from "./support.ts";

type Json = Record<string, unknown>;
type Call = readonly [tool: string, args: Json];

const own = fixtureServer("results.mjs", { SECRET: "s3cr3t-of-the-test" });
const ROWS = Array.from({ length: 20 }, (_, id) => ({ id, name: `item ${id}` }));
const answerOf = (text: string): Json => ({ content: [{ type: "text", text }] });

const turn = inTurn();

/** Loads the tools and calls them in one message. Resolves with the texts that the model reads, in the same order. */
async function readsOf({ prompt, rpc, scripted }: Opened, calls: readonly Call[]): Promise<string[]> {
  const names = [...new Set(calls.map(([tool]) => tool))];
  await prompt(searchFor(`select:${names.join(",")}`), {
    toolCalls: calls.map(([name, args]) => ({ name, args })),
  });
  expect(rpc.stderr).toBe("");
  const last = scripted.requests.at(-1);
  return last ? toolResultTexts(last).slice(-calls.length) : [];
}

/** A search waits only a limited time for servers that start. */
async function connected(mcp: Json): Promise<InTurn> {
  const pi = await turn({ mcp });
  await expect
    .poll(() => pi.status(), { timeout: PATIENCE_MS, interval: 200 })
    .toMatch(/^MCP: (\d+) of \1 servers connected/);
  return pi;
}

/** A session of real and of odd results, which are whole. */
const whole = once(() =>
  connected({
    settings: { toonEncode: ["toon"], outputGuard: false },
    mcpServers: { everything: SERVERS.everything, toon: own, json: own },
  }),
);

describe("server-everything", () => {
  const LONG = "everything__trigger-long-running-operation";

  test("annotated text, an image, links, structured and embedded content -> the model gets each in its right form", async () => {
    const calls: Call[] = [
      ["everything__get-annotated-message", { messageType: "error", includeImage: true }],
      ["everything__get-tiny-image", {}],
      ["everything__get-resource-links", { count: 2 }],
      ["everything__get-structured-content", { location: "Chicago" }],
      ["everything__get-resource-reference", { resourceType: "Text", resourceId: 1 }],
    ];
    const pi = await whole();
    const ends = await pi.prompt(
      searchFor(`select:${calls.map(([tool]) => tool).join(",")}`),
      { toolCalls: calls.map(([name, args]) => ({ name, args })) },
      searchFor("select:everything__get_dynamic_text_resource"),
      call("everything__get_dynamic_text_resource", { resourceId: "2" }),
    );
    const end = (name: string): RpcToolEnd | undefined =>
      ends.find(({ toolName }) => toolName === `everything__${name}`);

    const annotated = end("get-annotated-message");
    expect(annotated?.text).toMatch(/^Error: Operation failed/);
    // The image is for the user: the model gets no image, and the row names the file.
    expect(annotated?.result.content.map(({ type }) => type)).toEqual(["text"]);
    expect(annotated?.result.details).toMatchObject({
      forUser: expect.stringMatching(/for you only; saved to/),
    });
    expect(end("get-tiny-image")?.result.content[1]).toMatchObject({ type: "image", mimeType: "image/png" });
    const links = end("get-resource-links")?.text ?? "";
    expect(links.match(/^\[Resource link: .*\] demo:\/\/resource\/.*$/gm)).toHaveLength(2);
    expect(links).toContain(
      'Read it with the tool everything__get_dynamic_text_resource and {"resourceId":"2"}.',
    );
    // The tool that the link names reads the resource.
    expect(end("get_dynamic_text_resource")?.text).toMatch(
      /^\[Resource: demo:\/\/resource\/dynamic\/text\/2\]/,
    );
    const structured = end("get-structured-content");
    expect(structured?.result.content).toHaveLength(1);
    expect(JSON.parse(structured?.text ?? "")).toMatchObject({ conditions: expect.any(String) });
    expect(end("get-resource-reference")?.text).toContain("[Resource: demo://resource/dynamic/text/1]\n");
    expect(ends.map(({ isError }) => isError)).not.toContain(true);
    expect(extensionErrors(pi.rpc.events)).toEqual([]);
  });

  test("a long-running operation -> it shows its progress; a cancelled operation ends, and the next call works", async () => {
    const { rpc, prompt } = await whole();
    const since = rpc.events.length;
    const stopped = prompt(
      searchFor(`select:${LONG},everything__echo`),
      call(LONG, { duration: 1, steps: 4 }),
      call(LONG, { duration: 600, steps: 600 }),
    );
    const isStart = ({ type, toolName, args }: Json): boolean =>
      type === "tool_execution_start" && toolName === LONG && (args as Json).duration === 600;
    await rpc.waitFor(isStart);
    await rpc.request({ type: "abort" });
    const ends = await stopped;
    expect(ends.map(({ isError }) => isError)).toEqual([false, false, true]);
    expect(ends[1]?.text).toContain("Long running operation completed. Duration: 1 seconds, Steps: 4.");
    expect(ends[2]?.text).toMatch(/cancelled|aborted/i);
    const told = rpc.events
      .slice(since)
      .filter(
        ({ type, toolCallId }) => type === "tool_execution_update" && toolCallId === ends[1]?.toolCallId,
      )
      .map(({ partialResult }) => (partialResult as { details: Json }).details);
    // The last step may come with the answer.
    expect(told).toContainEqual(expect.objectContaining({ server: "everything", progress: 3, total: 4 }));
    const [next] = await prompt(call("everything__echo", { message: "again" }));
    expect(next).toMatchObject({ toolName: "everything__echo", isError: false, text: "Echo: again" });
  });
});

test("settings.toonEncode -> JSON of the named server becomes TOON; settings.outputGuard false -> nothing of 100 KB is left out", async () => {
  const json = JSON.stringify(ROWS);
  const text = "a line of text\n".repeat(7_000);
  const shown = await readsOf(await whole(), [
    ["toon__answer", answerOf(json)],
    ["toon__answer", answerOf("no JSON")],
    ["json__answer", answerOf(json)],
    ["json__answer", answerOf(text)],
  ]);
  expect(shown[0]).toMatch(/^TOON:\n\[20\]\{id,name\}:\n {2}0,item 0\n/);
  expect(shown.slice(1)).toEqual(["no JSON", json, text]);
});

/** A session of results that are cut and counted. */
const guarded = once(() =>
  connected({
    settings: { outputGuard: { maxBytes: 2_000 }, captureStats: { path: "stats/calls.jsonl" } },
    mcpServers: {
      plain: own,
      short: { ...own, outputGuard: { maxLines: 10 } },
      whole: { ...own, outputGuard: false },
      own: { ...own, outputGuard: { maxBytes: 51_200 } },
    },
  }),
);

describe("settings.outputGuard", () => {
  const lines = answerOf("a line of text\n".repeat(500));
  const CUT = /^(a line of text\n)+\[\.\.\. .* left out here\. Full text: .*\]\n(a line of text\n)+$/;

  test("outputGuard of the settings and of one server, which wins -> fewer lines, or all lines", async () => {
    const names = ["plain", "short", "whole"];
    const [plain = "", short = "", whole = ""] = await readsOf(
      await guarded(),
      names.map((name) => [`${name}__answer`, lines]),
    );
    expect(plain).toMatch(CUT);
    expect(Buffer.byteLength(plain)).toBeLessThanOrEqual(2_000);
    expect(plain.split("\n").length).toBeGreaterThan(11);
    expect(short).toMatch(CUT);
    expect(short.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
    expect(whole).toBe("a line of text\n".repeat(500));
    const stored = /Full text: (\/.*)\]/.exec(plain)?.[1] ?? "";
    expect(await readFile(stored, "utf8")).toBe(whole);
  });

  test("the full text cannot be stored -> the start and the end arrive, with the reason", async () => {
    const pi = await guarded();
    // No user, not even root, can make a folder below a file.
    const folder = join(pi.at.agentDir, "mcp-results");
    await removeFolder(folder);
    await writeFile(folder, "");
    const [shown = ""] = await readsOf(pi, [["own__big", { piece: "a line of text\n", times: 10_000 }]]);
    await rm(folder);
    expect(shown).toMatch(/^(a line of text\n)+\[\.\.\. [\d,]+ bytes of 150,000 bytes .* left out here\. /);
    expect(shown).toMatch(/The full text could not be stored: E[A-Z]+: .*\]\n(a line of text\n)+$/);
    expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(51_200);
  });
});

test("settings.captureStats -> the file and /mcp stats hold calls, errors and bytes", async () => {
  const audio = { type: "audio", mimeType: "audio/wav", data: Buffer.alloc(3_000).toString("base64") };
  const calls: Call[] = [
    ["own__answer", answerOf("12345")],
    ["own__answer", { content: [audio] }],
    ["own__fail", { code: 7 }],
  ];
  const { at, rpc, prompt } = await guarded();
  await prompt(searchFor("select:own__answer,own__fail"), {
    toolCalls: calls.map(([name, args]) => ({ name, args })),
  });
  const [shown] = notices(await rpc.command("/mcp stats"));
  expect(shown?.message).toMatch(/own\W+answer\D+2\D+0\b/);
  expect(shown?.message).toMatch(/own\W+fail\D+1\D+1\b/);
  const file = await readFile(join(at.agentDir, "stats", "calls.jsonl"), "utf8");
  const entries = file
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Json)
    // The other calls of the session are those of the tests before.
    .filter(({ server, tool }) => server === "own" && tool !== "big");
  expect(entries).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ tool: "answer", failed: false, receivedBytes: 5, shownBytes: 5 }),
      expect.objectContaining({ tool: "answer", failed: false, receivedBytes: 4_000, savedTextBytes: 0 }),
      expect.objectContaining({ server: "own", tool: "fail", failed: true }),
    ]),
  );
  expect(entries).toHaveLength(3);
});
