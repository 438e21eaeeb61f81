/**
 * Owns: the check that the types of `src/pi`, a hand-written copy of the used part of Pi's API, still fit Pi. The tests
 * compile them against the published types of the pinned Pi, so a change on either side fails a test.
 */
import { execFile } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensurePi } from "../support/pi-host.ts";
import { removeFolder } from "../support/temp-folder.ts";

const root = join(import.meta.dirname, "..", "..");
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(root, "node_modules", ".cache", "host-types-"));
});
afterAll(() => removeFolder(dir));

/** Compiles programs together: the compiler reads Pi's types once. Resolves with its messages for each program's file. */
async function compile(programs: Record<string, string>): Promise<(file: string) => string> {
  const { packageDir, typesDir } = await ensurePi();
  const config = join(dir, "tsconfig.json");
  const files = Object.keys(programs).map((name) => join(dir, `${name}.ts`));
  for (const [name, program] of Object.entries(programs)) await writeFile(join(dir, `${name}.ts`), program);
  await writeFile(
    config,
    JSON.stringify({
      extends: join(root, "tsconfig.base.json"),
      compilerOptions: {
        noEmit: true,
        composite: false,
        incremental: false,
        emitDeclarationOnly: false,
        lib: ["es2024", "dom"],
        types: ["node"],
        typeRoots: [join(root, "node_modules", "@types")],
        // Pi compiles its declarations without these two options.
        exactOptionalPropertyTypes: false,
        erasableSyntaxOnly: false,
        paths: {
          "pi-types": [join(packageDir, "dist", "index.d.ts")],
          "@earendil-works/pi-agent-core": [join(typesDir, "@earendil-works/pi-agent-core/dist/index.d.ts")],
          "@earendil-works/pi-ai": [join(typesDir, "@earendil-works/pi-ai/dist/index.d.ts")],
          typebox: [join(typesDir, "typebox/build/index.d.mts")],
        },
      },
      files,
    }),
  );
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const output = await promisify(execFile)(process.execPath, [tsc, "-p", config, "--pretty", "false"]).then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
  // A message begins with its file; its further lines are indented.
  const messages = output.split(/\n(?! )/).filter((message) => message !== "");
  const isOf = (message: string, name: string): boolean => message.includes(`/${name}.ts(`);
  return (name) => {
    const others = Object.keys(programs).filter((other) => other !== name);
    return messages.filter((message) => !others.some((other) => isOf(message, other))).join("\n");
  };
}

const IMPORTS = `
import type { ExtensionAPI, ExtensionContext, ExtensionToolContext, ExtensionFactory, ToolDefinition, RegisteredCommand, AgentToolResult } from "pi-types";
import type { Pi, PiCommand, PiContext, PiTool, PiToolContext, ToolResult } from "${join(root, "src", "pi", "api.ts")}";
`;

const FITS = `${IMPORTS}
import factory from "${join(root, "src", "index.ts")}";
declare const api: ExtensionAPI;
declare const context: ExtensionContext;
declare const toolContext: ExtensionToolContext;
declare const tool: PiTool;
declare const command: PiCommand;
declare const result: ToolResult;
export const ours: Pi = api;
export const ourContext: PiContext = context;
export const ourToolContext: PiToolContext = toolContext;
export const theirTool: ToolDefinition = tool;
export const theirCommand: Omit<RegisteredCommand, "name" | "sourceInfo"> = command;
export const theirResult: AgentToolResult<unknown> = result;
export const theirFactory: ExtensionFactory = factory;
`;

const REFUSED: Record<string, string> = {
  "a method that Pi does not have": "export const x: { noSuchMethod(): void } = null! as ExtensionAPI;",
  "a context field of another type": "export const x: { cwd: number } = null! as ExtensionContext;",
  "a result that is not content": "export const x: AgentToolResult<unknown> = { content: 1, details: 2 };",
  "an exposure that Pi does not know": 'export const x: ToolDefinition["exposure"] = "secret";',
};
const fileOf = (title: string): string => title.replaceAll(" ", "-");

let messagesOf: (file: string) => string;
beforeAll(async () => {
  const refused = Object.entries(REFUSED).map(([title, line]) => [fileOf(title), `${IMPORTS}${line}\n`]);
  messagesOf = await compile({ fits: FITS, ...Object.fromEntries(refused) });
});

test("the types of src/pi and the published types of the pinned Pi -> they fit each other", () => {
  expect(messagesOf("fits")).toBe("");
});

test.each(Object.keys(REFUSED))("%s -> the compiler refuses it, so the check is real", (title) => {
  expect(messagesOf(fileOf(title))).toMatch(new RegExp(`/${fileOf(title)}\\.ts\\(\\d+,\\d+\\): error TS2`));
});
