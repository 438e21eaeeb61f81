/** Owns: how little of a long message leaves the thread that has parsed it. */
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  bounded,
  KEPT_TEXT_CHARS,
  KEPT_VALUES,
  prune,
} from "../../../../../workers/connection/messages/prune.ts";
import { createRandom } from "../../../random.ts";

const keys = (count: number, value: unknown = 0): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]));
const countOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? Object.values(value).reduce((all: number, each) => all + countOf(each), 1)
    : 1;
const answer = (result: Record<string, unknown>) => ({ jsonrpc: "2.0" as const, id: 7, result });
const read = (result: Record<string, unknown>, method: string): Record<string, never> =>
  (JSON.parse(prune(answer(result), method).json) as { result: Record<string, never> }).result;
const decoded = (pieces: readonly Uint8Array[]): unknown[] =>
  pieces.flatMap((piece) => JSON.parse(Buffer.from(piece).toString("utf8")) as unknown[]);

describe("bounded", () => {
  it.each<[string, unknown]>([
    ["200,000 keys", keys(200_000)],
    ["a million items", Array(1_000_000).fill({})],
    ["lists in lists", Array(2_000).fill(Array(2_000).fill(0))],
    ["a text of 10 MB", "x".repeat(10_000_000)],
    ["a thousand texts of 100 KB", Array(1_000).fill("x".repeat(100_000))],
    ["a key of 1 MB", { ["x".repeat(200_000)]: 1 }],
    ["depth of 100,000", JSON.parse("[".repeat(100_000) + "]".repeat(100_000))],
  ])("%s -> few values, few characters", (_name, value) => {
    const kept = bounded(value);
    expect(countOf(kept)).toBeLessThanOrEqual(KEPT_VALUES);
    expect(JSON.stringify(kept).length).toBeLessThanOrEqual(3 * KEPT_TEXT_CHARS + 50 * KEPT_VALUES);
  });

  test("a flood in one member -> the members beside it are kept", () => {
    const kept = bounded({ flood: keys(100_000), after: { name: "x" }, deep: { a: { b: { c: 1 } } } });
    expect(kept).toMatchObject({ after: { name: "x" }, deep: { a: { b: { c: 1 } } } });
  });

  test("a value within the bounds -> the same value", () => {
    const random = createRandom(3);
    const value = (depth: number): unknown => {
      const kind = random.below(depth === 0 ? 3 : 5);
      if (kind === 0) return random.next();
      if (kind === 1)
        return ["", "a\u0000\ud800", "long ".repeat(random.below(99)), true, null][random.below(5)];
      if (kind === 2) return -random.below(9);
      const members = Array.from({ length: random.below(6) }, () => value(depth - 1));
      return kind === 3 ? members : Object.fromEntries(members.map((member, i) => [`k${i}`, member]));
    };
    for (let i = 0; i < 200; i++) {
      const json = value(4);
      expect(bounded(json)).toEqual(json);
    }
  });

  test("a key __proto__ -> no prototype", () => {
    expect(bounded(JSON.parse('{"a":{"__proto__":{"b":1}}}'))).toEqual({ a: {} });
  });

  test("a text longer than any reader takes -> still too long", () => {
    expect((bounded({ state: "x".repeat(5_000_000) }) as { state: string }).state).toHaveLength(
      KEPT_TEXT_CHARS,
    );
  });
});

describe("prune", () => {
  it.each(["tools/call", "resources/read", "prompts/get"])(
    "the result of %s -> stays in the thread",
    (method) => {
      const pruned = prune(
        answer({ content: [{ type: "text", text: "x".repeat(300_000) }], _meta: keys(9) }),
        method,
      );
      expect(pruned.held).toBe("result");
      expect(pruned.json).toBe('{"jsonrpc":"2.0","id":7,"result":{}}');
    },
  );

  test("a call that asks the user first -> the questions and the state, which are read here", () => {
    const result = {
      resultType: "input_required",
      requestState: "s".repeat(300_000),
      inputRequests: { a: { method: "x" } },
    };
    expect(prune(answer(result), "tools/call").held).toBeUndefined();
    expect(read(result, "tools/call")).toEqual(result);
  });

  test("a task that is done -> its result alone stays", () => {
    const task = { taskId: "t", status: "completed", result: { content: [{ type: "text", text: "x" }] } };
    const pruned = prune(answer(task), "tasks/get");
    expect(pruned.held).toBe("task");
    expect(JSON.parse(pruned.json)).toMatchObject({
      result: { taskId: "t", status: "completed", result: {} },
    });
  });

  test("a list of tools -> the tools, normalized, in pieces, and what the page says beside them", () => {
    const tool = (i: number) => ({
      name: `t${i}`,
      description: "d".repeat(500),
      inputSchema: { type: "object" },
    });
    const tools = Array.from({ length: 2_000 }, (_, i) => tool(i));
    const { items, json, notes } = prune(
      answer({
        tools: [
          ...tools,
          { name: "task", execution: { taskSupport: "required" } },
          { name: "deep", inputSchema: JSON.parse(`${'{"a":'.repeat(99)}1${"}".repeat(99)}`) },
        ],
        nextCursor: "c",
        ttlMs: 5,
        more: keys(99_000),
      }),
      "tools/list",
    );
    expect(items?.field).toBe("tools");
    expect(items?.pieces.length).toBeGreaterThan(10);
    expect(Math.max(...(items?.pieces ?? []).map(({ length }) => length))).toBeLessThan(70_000);
    expect(decoded(items?.pieces ?? [])).toEqual([
      ...tools,
      { name: "task", execution: { taskSupport: "required" } },
      { name: "deep" },
    ]);
    expect(JSON.parse(json)).toMatchObject({ result: { nextCursor: "c", ttlMs: 5 } });
    expect(notes).toEqual(["schemas left out, too deep or too big: deep"]);
  });

  test("more tools than a server may have -> so many, some further names, and a note", () => {
    const tools = Array.from({ length: 50_000 }, (_, i) => ({ name: `t${i}`, description: "d" }));
    const { items, notes } = prune(answer({ tools }), "tools/list");
    const kept = decoded(items?.pieces ?? []);
    expect(kept.slice(0, LIMITS.toolsPerServer)).toEqual(tools.slice(0, LIMITS.toolsPerServer));
    expect(kept.length).toBeGreaterThan(LIMITS.toolsPerServer + 20);
    expect(kept.length).toBeLessThan(LIMITS.toolsPerServer + 1_000);
    expect(kept.at(-1)).toEqual({ name: `t${kept.length - 1}` });
    expect(notes).toEqual(["lists 50,000 tools at once"]);
  });

  it.each([
    ["capabilities", "initialize"],
    ["_meta", "ping"],
    ["data", "completion/complete"],
  ])("100,000 keys as %s of the answer to %s -> some of them", (key, method) => {
    expect(countOf(read({ [key]: keys(100_000), last: "kept" }, method))).toBeLessThan(KEPT_VALUES);
    expect(read({ [key]: keys(100_000), last: "kept" }, method)).toHaveProperty("last", "kept");
  });

  it.each([
    ["an error", (error: object) => ({ jsonrpc: "2.0" as const, id: 7, error }) as never],
    ["the error of a task", (error: object) => answer({ status: "failed", error })],
  ])("the text of %s -> its beginning, and its length", (_name, message) => {
    const prunedOf = (chars: number) =>
      prune(message({ code: 1, message: "x".repeat(chars) }), "tasks/get").errorChars;
    expect(prunedOf(3_000_000)).toBe(3_000_000);
    expect(prunedOf(1_000_000)).toBeUndefined();
  });

  test("an error, a notification, a request -> some of its data", () => {
    const error = { code: 1, message: "no", data: keys(100_000) };
    for (const message of [
      { jsonrpc: "2.0", id: 7, error },
      { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: keys(100_000) } },
      { jsonrpc: "2.0", id: 1, method: "elicitation/create", params: keys(100_000) },
    ] as const) {
      const { json } = prune(message, undefined);
      expect(json.length).toBeLessThan(100_000);
      expect(JSON.parse(json)).toMatchObject({ jsonrpc: "2.0" });
    }
  });

  describe("skills", () => {
    const uriOf = (path: string): string => `skill://${"long".repeat(200)}/pdf/${path}`;
    const file = (path: string) => ({ uri: uriOf(path), digest: `sha256:${"a".repeat(64)}`, size: 7 });
    const skill = {
      uri: uriOf("SKILL.md"),
      frontmatter: { name: "pdf", description: "Reads." },
      resources: [file("SKILL.md"), ...Array.from({ length: 511 }, (_, i) => file(`${i}.md`))],
    };

    test("one with 512 files -> whole; the time that it counts stays", () => {
      expect(read({ skill, ttlMs: 5, flood: keys(100_000) }, "skills/get")).toMatchObject({
        skill: { resources: skill.resources },
        ttlMs: 5,
      });
      expect(
        read({ skill: { ...skill, resources: Array(600_000).fill(0) } }, "skills/get").skill,
      ).toMatchObject({
        fault: "it has 600,000 files, at most 512 are possible",
        resources: [],
      });
      expect(read({ skill: "x".repeat(1_000_000) }, "skills/get")).toEqual({});
    });

    test("a list -> one more than the limit, so that a note can say so; its time stays", () => {
      const many = Array.from({ length: 10_000 }, (_, i) => {
        const uri = `skill://${i}/SKILL.md`;
        return { uri, frontmatter: { name: `${i}`, description: "x" }, resources: [{ ...file(""), uri }] };
      });
      const { items, json } = prune(answer({ skills: many, ttlMs: 5, nextCursor: "2" }), "skills/list");
      expect(decoded(items?.pieces ?? [])).toHaveLength(LIMITS.skillsPerServer + 1);
      expect(JSON.parse(json).result).toEqual({ ttlMs: 5, nextCursor: "2" });
    });
  });
});
