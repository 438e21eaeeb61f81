/** Owns: names and parts of stored results. */
import { open, readFile, stat } from "node:fs/promises";
import { expect, test } from "vitest";
import { createResultStore } from "../../../../../workers/connection/results/store.ts";
import { tempFolder } from "./support.ts";

test("parts of text and bytes -> one file; a surrogate pair between two writes stays whole", async () => {
  const store = createResultStore({ root: await tempFolder() });
  const text = `${"x".repeat(1024 * 1024 - 1)}😀${"y".repeat(1024 * 1024)}`;
  const saved = await store.save([text, Buffer.from("bytes"), "", "ä"], "a/b ../c", "txt");
  if (!("path" in saved)) throw new Error(saved.problem);
  expect(await readFile(saved.path, "utf8")).toBe(`${text}bytesä`);
  expect(saved.bytes).toBe((await stat(saved.path)).size);
  expect(saved.path).toMatch(/\/a-b-c-[0-9a-f]{8}\.txt$/);
});

test("a hundred thousand short parts -> a few writes, everything in its place", async () => {
  let writes = 0;
  const store = createResultStore({
    root: await tempFolder(),
    create: async (path) => {
      const file = await open(path, "wx");
      const write = file.writeFile.bind(file);
      file.writeFile = (...args) => {
        writes++;
        return write(...args);
      };
      return file;
    },
  });
  const parts = Array.from({ length: 100_000 }, (_, i) => (i % 2 === 0 ? `${i}` : "\n"));
  parts[50_000] = "long ".repeat(40_000);
  const bytes = Buffer.from("bytes");
  const saved = await store.save([...parts, bytes, "end"], "x", "txt");
  if (!("path" in saved)) throw new Error(saved.problem);
  expect(await readFile(saved.path, "utf8")).toBe(`${parts.join("")}bytesend`);
  expect(writes).toBeLessThan(20);
});
