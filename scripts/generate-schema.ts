/** Writes the JSON Schema of `mcp.json` from its validator. A test checks that the schema file is up to date. */
import { mkdir, writeFile } from "node:fs/promises";
import { schemaText } from "../workers/connection/config/entry/json-schema.ts";

const file = new URL("../schema/mcp.schema.json", import.meta.url);
await mkdir(new URL(".", file), { recursive: true });
await writeFile(file, schemaText());
