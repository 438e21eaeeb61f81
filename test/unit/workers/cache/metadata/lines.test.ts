/** A cache file of one line an entry: changed lines say the same as a file that is parsed, changed and written as a whole. */
import { describe, expect, it, test } from "vitest";
import { changeSlots, type Slots } from "../../../../../workers/cache/metadata/entry.ts";
import { changeLines, formatLines } from "../../../../../workers/cache/metadata/file.ts";
import type { CacheEntry, SlotChanges } from "../../../../../workers/shared/tasks.ts";
import { amount } from "../../../../support/long.ts";
import { createRandom } from "../../../random.ts";
import { entry, NOW } from "../support.ts";

const NAMES = ["a", "ab", "a#b", 'a":b', "ä\n{}", "", "#", "__proto__", "7", "servers", "a\\", "\u2028"];
const STEPS = amount(120, 400);

const changesOf = (entries: Record<string, CacheEntry>): SlotChanges => ({ entries, used: {} });
/** Of a map, since an object has a prototype and an order of its own. */
const sorted = (slots: Slots): [string, unknown][] => [...slots].sort(([a], [b]) => (a < b ? -1 : 1));
const slotsIn = (bytes: Buffer): Slots =>
  new Map(Object.entries((JSON.parse(bytes.toString()) as { servers: object }).servers));
const whole = (parts: readonly Buffer[] | undefined): Buffer => Buffer.concat(parts ?? []);
const change = (bytes: Buffer, changes: SlotChanges): readonly Buffer[] | undefined =>
  changeLines(bytes, 1, [changes], NOW);

test(`${STEPS} changes of entries with odd names -> the entries of the whole way, in lines again`, () => {
  const random = createRandom(7);
  let slots: Slots = new Map();
  let bytes = whole(formatLines({ mine: "kept", version: 1 }, slots));
  for (let step = 0; step < STEPS; step++) {
    const picked = Array.from({ length: 1 + random.below(3) }, () => NAMES[random.below(NAMES.length)] ?? "");
    const entries = picked.map((name): [string, CacheEntry] => [
      name,
      entry(`hash ${random.below(4)} of it`, { instructions: `\n"${random.below(3)}":{é,\n` }),
    ]);
    const changes = changesOf(Object.fromEntries(entries));
    const after = changeSlots(slots, changes, NOW);
    const parts = change(bytes, changes);
    expect(parts, `step ${step}`).toBeDefined();
    if (!after) expect(parts).toEqual([]);
    else bytes = whole(parts);
    slots = after ?? slots;
    expect(sorted(slotsIn(bytes)), `step ${step}`).toEqual(sorted(slots));
  }
  expect(JSON.parse(bytes.toString())).toMatchObject({ mine: "kept", version: 1 });
  expect(bytes.toString().split("\n").length).toBe(slots.size + 3);
});

describe("a file that must be parsed as a whole -> undefined", () => {
  const slots: Slots = new Map([
    ["a", entry("one")],
    ["b", entry("two")],
  ]);
  const good = whole(formatLines({ version: 1 }, slots)).toString();
  const parsed = JSON.parse(good) as object;
  const fresh = changesOf({ a: entry("new") });

  test("the file that the others differ from -> changed", () => {
    expect(slotsIn(whole(change(Buffer.from(good), fresh))).get("a")).toMatchObject({ configHash: "new" });
  });

  it.each<[string, string]>([
    ["one line", `${JSON.stringify(parsed)}\n`],
    ["indented", `${JSON.stringify(parsed, null, 2)}\n`],
    ["indented with nothing", `${JSON.stringify(parsed, null, "")}\n`],
    ["another version", good.replace('"version":1', '"version":2')],
    ["no version", good.replace('{"version":1,', '{"v":1,')],
    ["something behind the servers", good.replace("\n}}\n", '\n},"x":{}}\n')],
    ["half of it", good.slice(0, good.length / 2)],
    ["without its end", good.slice(0, -1)],
    ["the server's line broken", good.replace('"a":{', '"a":{{')],
    ["the first line broken", good.replace('{"version"', '{{"version"')],
    ["a first line of 20,000 characters", good.replace("{", `{"x":"${"x".repeat(20_000)}",`)],
    ["empty", ""],
  ])("%s", (_name, text) => {
    expect(text).not.toBe(good);
    expect(change(Buffer.from(text), fresh)).toBeUndefined();
  });

  test("uses to be written down, which is when old entries go", () => {
    expect(change(Buffer.from(good), { entries: fresh.entries, used: { b: "two" } })).toBeUndefined();
  });
});
