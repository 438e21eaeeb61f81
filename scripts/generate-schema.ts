/**
 * Writes what is made from the validator of `mcp.json`: its JSON Schema, and the tables of all keys in the
 * pages of docs/. Tests check that both are up to date.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { KEY_PAGES, keyTables, schemaText, withKeyTables } from "./key-tables.ts";

const file = new URL("../schema/mcp.schema.json", import.meta.url);
await mkdir(new URL(".", file), { recursive: true });
await writeFile(file, schemaText());

for (const [name, names] of Object.entries(KEY_PAGES)) {
  const page = new URL(`../docs/${name}`, import.meta.url);
  await writeFile(page, withKeyTables(await readFile(page, "utf8"), keyTables(), names));
}
