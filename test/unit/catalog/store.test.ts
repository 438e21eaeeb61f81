/** Owns: the current catalog on main: from events, and without what is gone before the next snapshot comes. */
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

test("no snapshot -> empty; one from an event -> its tools and checksum", async () => {
  const store = await makeStore();
  expect([names(store), store.checksum()]).toEqual([[], undefined]);
  store.replace(BYTES);
  expect(store.checksum()).toBe(CHECKSUM);
  expect(names(store)).toEqual(["a__one", "a__two", "b__three"]);
});

test("something is left out -> gone at once, also of a snapshot that nobody has looked at; the next one counts whole", async () => {
  const store = await makeStore();
  store.replace(BYTES);
  store.leaveOut({ servers: ["b"], tools: [{ server: "a", tool: "two" }] });
  expect(names(store)).toEqual(["a__one"]);
  // A worker that starts now, knowing this checksum, would not send what main has no longer.
  expect(store.checksum()).toBeUndefined();
  store.replace(BYTES);
  expect(names(store)).toHaveLength(3);
  expect(store.checksum()).toBe(CHECKSUM);
});

test("waiting for a snapshot: one that is there, none, one that comes", async () => {
  const store = await makeStore();
  await store.reached(undefined);
  const reached = store.reached(CHECKSUM);
  store.replace(BYTES);
  await reached;
  store.leaveOut({ servers: ["b"], tools: [] });
  await store.reached(CHECKSUM);
  expect(names(store)).toHaveLength(2);
});
