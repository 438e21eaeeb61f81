/**
 * Writes what is made from the validator of `mcp.json` and of a policy: their JSON Schemas, and the tables of all keys in the
 * pages of docs/. Tests check that both are up to date.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { KEY_PAGES, keyTables, policySchemaText, schemaText, withKeyTables } from "./key-tables.ts";

const folder = new URL("../schema/", import.meta.url);
await mkdir(folder, { recursive: true });
await writeFile(new URL("mcp.schema.json", folder), schemaText());
await writeFile(new URL("policy.schema.json", folder), policySchemaText());

for (const [name, names] of Object.entries(KEY_PAGES)) {
  const page = new URL(`../docs/${name}`, import.meta.url);
  await writeFile(page, withKeyTables(await readFile(page, "utf8"), keyTables(), names));
}
