/**
 * Owns: the check that `src/pi/api.ts`, a hand-written copy of the used part of Pi's API, still fits Pi. The tests
 * compile the file against the published types of the pinned Pi, so a change on either side fails a test.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensurePi } from "../support/pi-host.ts";

const root = join(import.meta.dirname, "..", "..");
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(root, "node_modules", ".cache", "host-types-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** Resolves with the compiler's output for one program; empty if the program compiles. */
async function compile(name: string, program: string): Promise<string> {
  const { packageDir, typesDir } = await ensurePi();
  const file = join(dir, `${name}.ts`);
  const config = join(dir, `${name}.json`);
  await writeFile(file, program);
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
      files: [file, join(root, "src", "shared", "protocol", "comlink-node.d.ts")],
    }),
  );
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  return promisify(execFile)(process.execPath, [tsc, "-p", config]).then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
}

const IMPORTS = `
import type { ExtensionAPI, ExtensionContext, ExtensionToolContext, ExtensionFactory, ToolDefinition, RegisteredCommand, AgentToolResult } from "pi-types";
import type { Pi, PiCommand, PiContext, PiTool, PiToolContext, ToolResult } from "${join(root, "src", "pi", "api.ts")}";
`;

test("src/pi/api.ts and the published types of the pinned Pi -> they fit each other", async () => {
  const program = `${IMPORTS}
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
  expect(await compile("fits", program)).toBe("");
});

test.each([
  ["a method that Pi does not have", "export const x: { noSuchMethod(): void } = null! as ExtensionAPI;"],
  ["a context field of another type", "export const x: { cwd: number } = null! as ExtensionContext;"],
  ["a result that is not content", "export const x: AgentToolResult<unknown> = { content: 1, details: 2 };"],
  ["an exposure that Pi does not know", 'export const x: ToolDefinition["exposure"] = "secret";'],
])("%s -> the compiler refuses it, so the check is real", async (name, line) => {
  expect(await compile(name.replaceAll(" ", "-"), `${IMPORTS}${line}\n`)).toMatch(/error TS2/);
});
