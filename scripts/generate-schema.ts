/**
 * Writes what is made from the validator of `mcp.json`: its JSON Schema, and the tables of all keys in
 * docs/configuration.md. Tests check that both are up to date.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { keyTables, schemaText, withKeyTables } from "./key-tables.ts";

const file = new URL("../schema/mcp.schema.json", import.meta.url);
await mkdir(new URL(".", file), { recursive: true });
await writeFile(file, schemaText());

const page = new URL("../docs/configuration.md", import.meta.url);
await writeFile(page, withKeyTables(await readFile(page, "utf8"), keyTables()));
