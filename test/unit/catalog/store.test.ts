/** Owns: the current catalog on main: it follows events, and loses removed tools before the next snapshot comes. */
import { expect, test } from "vitest";
import { type CatalogStore, createCatalogStore } from "../../../src/catalog/store.ts";
import { snapshotChecksum } from "../../../src/shared/snapshot/snapshot.ts";
import { makeSnapshotBytes } from "../make-catalog.ts";
import { tempFolder } from "../temp-folder.ts";

const BYTES = makeSnapshotBytes([
  { name: "a", tools: [{ tool: "one" }, { tool: "two" }] },
  { name: "b", tools: [{ tool: "three" }] },
]);
const CHECKSUM = snapshotChecksum(BYTES);

const makeStore = async (): Promise<CatalogStore> =>
  createCatalogStore(await tempFolder(), { cwd: "/nowhere", configFile: undefined });
const names = (store: CatalogStore): string[] => store.current().tools.map(({ name }) => name);

test("no snapshot -> empty; a snapshot from an event -> its tools and its checksum", async () => {
  const store = await makeStore();
  expect([names(store), store.checksum()]).toEqual([[], undefined]);
  store.replace(BYTES);
  expect(store.checksum()).toBe(CHECKSUM);
  expect(names(store)).toEqual(["a__one", "a__two", "b__three"]);
});

test("tools are left out -> they are gone at once, also before the snapshot is decoded; the next snapshot counts in full", async () => {
  const store = await makeStore();
  store.replace(BYTES);
  store.leaveOut({ servers: ["b"], tools: [{ server: "a", tool: "two" }] });
  expect(names(store)).toEqual(["a__one"]);
  // A worker that got this checksum now would not send again what main has left out.
  expect(store.checksum()).toBeUndefined();
  store.replace(BYTES);
  expect(names(store)).toHaveLength(3);
  expect(store.checksum()).toBe(CHECKSUM);
});
