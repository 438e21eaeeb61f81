/** Owns: what a server listed -> the entry that is stored, and when it is stored again. */
import { describe, expect, test } from "vitest";
import {
  EntryStore,
  type StoredServer,
  toEntry,
} from "../../../../../workers/connection/catalog/entry-store.ts";
import type { StoreTask } from "../../../../../workers/shared/tasks.ts";

const server = (name: string, over: Partial<StoredServer> = {}): StoredServer => ({
  name,
  tools: [{ name: "t" }],
  resources: undefined,
  prompts: undefined,
  instructions: undefined,
  protocol: undefined,
  ...over,
});

function open(answers: readonly boolean[] = [], hashes: Record<string, string> = {}) {
  const tasks: StoreTask[] = [];
  const results = [...answers];
  const store = new EntryStore({
    cache: {
      storeEntries: async (task) => {
        tasks.push(task);
        return results.shift() ?? true;
      },
    },
    path: "/cache",
    hashOf: (name) => hashes[name] ?? `hash of ${name}`,
  });
  return { store, tasks, names: () => tasks.map(({ entries }) => Object.keys(entries)) };
}

test.each<[string, Partial<StoredServer>, object]>([
  ["tools alone", {}, {}],
  ["no tools yet", { tools: undefined }, { tools: [] }],
  [
    "resources",
    { resources: { resources: [{ name: "n", uri: "x://n" }], templates: [] } },
    { resources: [{ name: "n", uri: "x://n" }], resourceTemplates: [] },
  ],
  ["prompts", { prompts: [{ name: "p" }] }, { prompts: [{ name: "p" }] }],
  ["empty instructions", { instructions: "" }, { instructions: "" }],
])("toEntry: %s", (_case, over, entry) => {
  expect(toEntry(server("a", over), "h", 5)).toEqual({
    configHash: "h",
    tools: [{ name: "t" }],
    cachedAt: 5,
    ...entry,
  });
});

describe("EntryStore", () => {
  test("nothing listed and nothing used -> no task", async () => {
    const { store, tasks } = open();
    store.store();
    await store.finish();
    expect(tasks).toEqual([]);
  });

  test("a server listed twice -> one entry, once", async () => {
    const { store, names } = open();
    const one = server("a");
    store.add(one);
    store.add(one);
    expect(store.hasUnsaved).toBe(true);
    store.store();
    store.store();
    await store.finish();
    expect([names(), store.hasUnsaved]).toEqual([[["a"]], false]);
  });

  test("a task that fails -> its servers with the next one, and once more at the end", async () => {
    const { store, names } = open([false, false]);
    store.add(server("a"));
    store.store();
    store.store();
    await store.finish();
    expect(names()).toEqual([["a"], ["a"], ["a"]]);
  });

  test("a server without a hash -> not stored", async () => {
    const { store, names } = open([], { a: "" });
    store.add(server("a"));
    store.add(server("b"));
    store.store();
    await store.finish();
    expect(names()).toEqual([["b"]]);
  });

  test("entries in use, noted twice -> written down once, together", async () => {
    const { store, tasks } = open();
    store.noteUsed({ a: "1" });
    store.noteUsed({ b: "2" });
    store.store();
    await store.finish();
    expect(tasks).toEqual([{ path: "/cache", entries: {}, used: { a: "1", b: "2" } }]);
  });
});
