/** Owns: what `serve --http` leaves of a start that a signal ends. */
import { readdir } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Context } from "../../../../src/cli/commands/known.ts";
import { serve } from "../../../../src/cli/commands/serve.ts";
import { NO_OPTIONS } from "../../../../src/cli/words/parse.ts";
import { SERVING_VARIABLE } from "../../../../src/shared/process/serving.ts";
import { tempFolder } from "../../temp-folder.ts";
import { captureConsole } from "../captured-console.ts";

test("a signal while the worker starts -> it listens no more, and no file holds a token", async () => {
  onTestFinished(() => {
    delete process.env[SERVING_VARIABLE];
  });
  const { console, stderr } = captureConsole();
  const ending = new AbortController();
  const agentDir = await tempFolder();
  await serve({
    console,
    place: { agentDir, key: { cwd: agentDir }, trust: { trust: "nothing" } },
    options: { ...NO_OPTIONS, http: true },
    arguments: [],
    signal: ending.signal,
    session: async () => {
      ending.abort();
      return {};
    },
  } as unknown as Context);
  expect(stderr()).toBe("");
  expect(await readdir(agentDir)).toEqual([]);
});
