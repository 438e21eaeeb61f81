/** Owns: the rule that no sentence of a worker names a command by itself: the same worker speaks to Pi and to a shell. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root, sourceFiles } from "./support/imports.ts";

/** Text of the code, without comments and the words about keys of mcp.json. */
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$|\bdescription:\s*"[^"]*"/gm;
const COMMAND =
  /\/mcp (?:add|auth|disable|doctor|edit|enable|import|lists|logout|reconnect|says|shows|tools|trust)\b|ToolSearch/g;

const commandsIn = (text: string): string[] => text.replaceAll(COMMENT, "").match(COMMAND) ?? [];

test("commands are named by workers/shared/commands.ts alone", async () => {
  const files = (await sourceFiles("workers")).filter((file) => file !== "workers/shared/commands.ts");
  const texts = await Promise.all(files.map((file) => readFile(join(root, file), "utf8")));
  const found = files.flatMap((file, i) => commandsIn(texts[i] ?? "").map((name) => `${file}: ${name}`));
  expect(found).toEqual([]);
});

test("the file that names them, and a sentence with a command -> the check finds the command", async () => {
  expect(commandsIn(await readFile(join(root, "workers/shared/commands.ts"), "utf8"))).toContain(
    "/mcp lists",
  );
  expect(commandsIn("// /mcp auth\nconst text = 'x: /mcp enable y';")).toEqual(["/mcp enable"]);
});
