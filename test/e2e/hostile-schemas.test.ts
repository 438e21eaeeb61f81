/**
 * Owns: tests of a server's schemas that could block Pi's main thread, where Pi checks the arguments of every call. The
 * tests run Pi's own check, and the whole Pi. Without the repair each of these checks takes minutes or far longer.
 */
import { beforeAll, describe, expect, test } from "vitest";
import type { Repair } from "../../workers/cache/schema/keywords.ts";
import { isLinear } from "../../workers/cache/schema/patterns.ts";
import { repairInputSchema } from "../../workers/cache/schema/schema.ts";
import { toolResultTexts } from "../support/model.ts";
import { TEST_MS } from "../support/patience.ts";
import { runPrint } from "../support/pi-run.ts";
import { piValidator } from "../support/pi-validator.ts";
import { createRandom } from "../unit/random.ts";
import { call, ENTRY, fixtureServer, home, model, searchFor } from "./support.ts";

type Schema = Record<string, unknown>;

const STRING = { type: "string" };
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });
const ref = (name: string): Schema => ({ $ref: `#/$defs/${name}` });
const map = (count: number, make: (i: number) => [string, unknown]): Schema =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => make(i)));
const inside = ($defs: Schema): Schema => object({ a: ref("x0") }, { $defs });
const chain = (part: (next: Schema) => Schema): Schema =>
  inside({ ...map(60, (i) => [`x${i}`, part(ref(`x${i + 1}`))]), x60: STRING });
const deep = (key: string | undefined, depth: number, leaf: unknown): unknown =>
  Array.from({ length: depth }).reduce((value) => (key === undefined ? [value] : { [key]: value }), leaf);

/** A schema with a pattern that backtracks; `VICTIM` is an argument that makes it backtrack without end. */
const REDOS = object({ a: { ...STRING, pattern: "^(([a-z])+.)+$" } });
const VICTIM = `${"a".repeat(60)}!!`;
/** A schema in which each part follows the next part twice. */
const DOUBLED = chain((next) => ({ allOf: [next, next] }));
/** A schema with two ways into each part of a tree. */
const TREE = inside({
  x0: {
    anyOf: [
      object({ c: ref("x0"), d: STRING }, { required: ["d"] }),
      object({ c: ref("x0") }, { required: ["e"] }),
    ],
  },
});
/** A schema of nested lists. Pi turns another value into a list, and tries each list schema for its items. */
const LISTS = inside(
  map(15, (i) => [
    `x${i}`,
    { type: "array", items: { anyOf: Object.values(map(15, (j) => [`${j}`, ref(`x${j}`)])) } },
  ]),
);

describe("Pi's check of arguments", () => {
  let check: Awaited<ReturnType<typeof piValidator>>;
  beforeAll(async () => {
    check = await piValidator();
  });

  /** Returns `runs` if Pi accepts the arguments, else Pi's message to the model. */
  const verdict = (schema: unknown, args: unknown): string => {
    try {
      check(schema, args);
      return "runs";
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each<[string, Schema, Repair[], unknown]>([
    ["a pattern that backtracks", REDOS, ["slow"], { a: VICTIM }],
    [
      "a pattern of names",
      object({}, { patternProperties: { "^(a+)+$": STRING } }),
      ["slow"],
      { [VICTIM]: "x" },
    ],
    [
      "a pattern of all names",
      object({}, { propertyNames: { pattern: "^(a+)+$" } }),
      ["slow"],
      { [VICTIM]: "x" },
    ],
    ["doublings", DOUBLED, ["effort"], { a: "x" }],
    ["doublings in a union", chain((next) => ({ anyOf: [next, next] })), ["effort"], { a: 1 }],
    [
      "doublings by not",
      chain((next) => ({ not: { not: { allOf: [next, next] } } })),
      ["effort", "choice"],
      { a: 1 },
    ],
    ["a tree with two ways", TREE, ["effort"], { a: deep("c", 40, {}) }],
    ["lists in each other", LISTS, ["effort"], { a: "x" }],
    [
      "a union of 1,000, and items that fit none",
      object({
        a: {
          type: "array",
          items: {
            anyOf: Object.values(
              map(1_000, (i) => [`${i}`, object({ [`k${i}`]: STRING }, { required: [`k${i}`] })]),
            ),
          },
        },
      }),
      ["effort"],
      { a: Array.from({ length: 200 }, () => ({})) },
    ],
  ])("%s -> answers at once", (_name, raw, repairs, args) => {
    const repaired = repairInputSchema(raw);
    expect(repaired.repairs).toEqual(repairs);
    expect(verdict(repaired.schema, args)).toMatch(/^(runs$|Validation failed)/);
  });

  test.each<[string, Schema, unknown, string]>([
    [
      "a tree",
      inside({
        x0: object({ name: STRING, children: { type: "array", items: ref("x0") } }, { required: ["name"] }),
      }),
      { a: { name: "1", children: [{ name: "2", children: [{}] }] } },
      "a.children.0.children.0.name: missing",
    ],
    [
      "a filter of and, or and leaves",
      inside({
        x0: {
          anyOf: [
            object({ and: { type: "array", items: ref("x0") } }, { required: ["and"] }),
            object({ or: { type: "array", items: ref("x0") } }, { required: ["or"] }),
            object({ field: STRING }, { required: ["field"] }),
          ],
        },
      }),
      { a: { and: [{ or: [{ field: "x" }] }, { field: {} }] } },
      "field",
    ],
    [
      "any JSON",
      inside({
        x0: {
          anyOf: [
            { type: ["string", "number", "boolean", "null"] },
            { type: "array", items: ref("x0") },
            { type: "object", additionalProperties: ref("x0") },
          ],
        },
      }),
      { a: deep("c", 20, [1, { d: null }]) },
      "runs",
    ],
  ])(
    "%s, as in real servers -> the schema stays unchanged, and the arguments are checked",
    (_name, schema, args, says) => {
      expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
      expect(verdict(schema, args)).toContain(says);
    },
  );

  test.each<[string, Schema, unknown[]]>([
    [
      "lists without items, and lists by position",
      object({
        any: { type: "array" },
        point: { type: "array", items: [{ type: "number" }, { type: "number" }], minItems: 2, maxItems: 2 },
        pair: { type: "array", prefixItems: [STRING, object({ n: { type: "number" } })], items: false },
        row: { type: "array", items: [STRING] },
      }),
      [{ any: ["a", 1, null, { b: [] }], point: [1.5, 2], pair: ["a", { n: 1 }], row: ["a", 2, true] }],
    ],
    [
      "anything",
      object({ a: true, b: {}, c: { type: "object", additionalProperties: {} } }),
      [
        { a: "x", b: [1], c: { d: null } },
        { a: null, b: { e: 1 } },
      ],
    ],
    [
      "patterns and limits in words",
      object({ a: { ...STRING, pattern: "^\\d+$" }, b: { ...STRING, maxLength: 5_000 } }),
      [{ a: "12", b: "x".repeat(5_000) }],
    ],
    [
      "references to other places",
      object(
        { a: object({ n: { type: "number" } }), b: { $ref: "#/properties/a", title: "B" }, c: { $ref: "#" } },
        { additionalProperties: false },
      ),
      [{ a: { n: 1 }, b: { n: 2 }, c: { b: { n: 3 }, c: {} } }],
    ],
    [
      "a type beside a union, listed values, choices of parameters",
      object({
        a: { type: ["string", "null"], anyOf: [{ minLength: 2 }, { type: "null" }] },
        b: { enum: ["x", "y"] },
        c: object({ x: STRING, y: STRING }, { anyOf: [{ required: ["x"] }, { required: ["y"] }] }),
      }),
      [
        { a: "ab", b: "x", c: { y: "1" } },
        { a: null, b: "y", c: { x: "1", y: "2" } },
      ],
    ],
    [
      "a required parameter without a schema, and a circle",
      object(
        { a: ref("x0") },
        {
          required: ["a", "z"],
          $defs: { x0: object({ v: STRING, next: ref("x0") }, { required: ["v", "next"] }) },
        },
      ),
      [{ a: { v: "1", next: { v: "2" } }, z: 7 }],
    ],
  ])("%s -> calls that fit the server's schema run with their own arguments", (_name, raw, calls) => {
    const { schema } = repairInputSchema(raw);
    for (const args of calls) expect(check(schema, structuredClone(args))).toEqual(args);
  });

  test("random schemas with references to any place -> no slow pattern reaches the engine", () => {
    const random = createRandom(20_261_122);
    const compiled = new Set<string>();
    const Engine = globalThis.RegExp;
    globalThis.RegExp = new Proxy(Engine, {
      construct: (target, [source, flags]: [string, string?]) => {
        compiled.add(source);
        return new target(source, flags);
      },
    });
    try {
      const makers: string[] = [];
      for (let i = 0; i < 400; i++) {
        const raw = randomSchema(random);
        const { schema } = repairInputSchema(raw);
        compiled.clear();
        for (const args of [
          { a: VICTIM, b: 1 },
          { a: deep("a", 20, 1), b: deep(undefined, 20, "x") },
          { b: deep("b", 20, {}) },
        ]) {
          expect(verdict(schema, args)).not.toContain("nresolved");
        }
        const slow = PATTERNS.filter((source) => compiled.has(source) && !isLinear(source));
        if (slow.length > 0) makers.push(JSON.stringify(raw));
      }
      expect(makers).toEqual([]);
    } finally {
      globalThis.RegExp = Engine;
    }
  });
});

const PATTERNS = ["^a+$", "(a+)+$", "^(([a-z])+.)+$", "(a*)*b"];

/**
 * Returns a small schema with every keyword that can hold a pattern, and references to places that a repair may miss.
 */
function randomSchema(random: ReturnType<typeof createRandom>): Schema {
  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)] as T;
  const places = [
    ...["#", "#/properties/a", "#/properties/b/items", "#/$defs/x0", "#/$defs/x1", "#/$defs/x2", "#/$defs"],
    ...["#/$defs/x0/default", "#/$defs/x0%2Fdefault", "#/$defs/x1/properties", "#/$defs/x2/odd/pattern"],
    ...["#/$defs/x1/enum/0", "#/$defs/x2/$vocabulary/v", "#/$defs/x0/odd/properties", "x", "#anchor"],
  ];
  const evil = (): Schema => ({ ...STRING, pattern: pick(PATTERNS) });
  const one = (depth: number): unknown => {
    const next = (): unknown => one(depth - 1);
    const makers: (() => unknown)[] = [
      () => ({ type: pick(["string", "number", "object", "array"]) }),
      () => ({ $ref: pick(places) }),
      evil,
      () => ({
        default: evil(),
        const: { pattern: pick(PATTERNS) },
        enum: [evil()],
        $vocabulary: { v: evil() },
      }),
      () => object({ a: next(), b: next() }, { additionalProperties: pick([false, next()]) }),
      () => ({ patternProperties: { [pick(PATTERNS)]: next() }, propertyNames: evil() }),
      () => ({ type: "array", items: next(), contains: next(), prefixItems: [next()] }),
      () => ({ [pick(["anyOf", "oneOf", "allOf"])]: [next(), next()] }),
      () => ({ not: next(), dependentSchemas: { a: next() }, unevaluatedProperties: next() }),
      () => ({
        odd: { pattern: evil(), properties: { pattern: pick(PATTERNS), items: next() } },
        $anchor: "anchor",
      }),
      () => ({ $id: "x", properties: { pattern: evil(), patternProperties: { [pick(PATTERNS)]: next() } } }),
    ];
    return pick(depth > 0 ? makers : makers.slice(0, 4))();
  };
  return object(
    { a: one(3), b: one(3) },
    {
      $defs: { x0: one(3), x1: one(3), x2: one(3), "x0/default": STRING },
      ...pick([{}, { anyOf: [one(2), one(2)] }]),
    },
  );
}

test(
  "tools with such schemas in the real Pi -> they are called and answer",
  async () => {
    const tools = [
      { name: "matches", inputSchema: REDOS },
      { name: "doubles", inputSchema: DOUBLED },
      { name: "lists", inputSchema: LISTS },
    ];
    const scripted = await model([
      searchFor("select:s__matches,s__doubles,s__lists"),
      call("s__matches", { a: VICTIM }),
      call("s__doubles", { a: "x" }),
      call("s__lists", { a: ["x"] }),
      { text: "ok" },
    ]);
    const server = fixtureServer("listed.mjs", { TOOLS: JSON.stringify(tools) });
    const at = await home({ mcp: { mcpServers: { s: server } } });
    const run = await runPrint({
      ...{ home: at, model: scripted, extensions: ENTRY, prompt: "go" },
      timeoutMs: TEST_MS,
    });
    expect(run).toMatchObject({ code: 0, stdout: "ok\n" });
    const declared = scripted.requests[1]?.tools.find((tool) => tool.function.name === "s__matches");
    expect(declared?.function.parameters).toMatchObject({
      properties: { a: { type: "string", description: "Must match /^(([a-z])+.)+$/." } },
    });
    const last = scripted.requests.at(-1);
    expect(last ? toolResultTexts(last).slice(1) : []).toEqual([
      `matches {"a":"${VICTIM}"}`,
      'doubles {"a":"x"}',
      'lists {"a":["x"]}',
    ]);
  },
  2 * TEST_MS,
);
