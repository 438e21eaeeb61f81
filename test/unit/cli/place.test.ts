/** Owns: the check of Pi's agent folder before the worker needs it. */
import { chmod, mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeAgentFolder } from "../../../src/cli/place/place.ts";
import { tempFolder } from "../temp-folder.ts";

test("a folder that is not there yet -> it is made, with the folders above it", async () => {
  const folder = join(await tempFolder(), "a", "b");
  makeAgentFolder(folder);
  makeAgentFolder(folder);
  expect((await stat(folder)).isDirectory()).toBe(true);
});

test("a file in its place, or above it -> a failure that names the folder and the variable", async () => {
  const file = join(await tempFolder(), "file");
  await writeFile(file, "");
  for (const folder of [file, join(file, "agent")]) {
    expect(() => makeAgentFolder(folder)).toThrow(
      expect.objectContaining({
        exitCode: 7,
        message: expect.stringContaining(`Pi's agent folder ${folder} cannot be made (`),
        remedy: "Correct PI_CODING_AGENT_DIR.",
      }),
    );
  }
});

// Node's recursive mkdir never ends there. On other systems there is no /proc, and nothing may be made at the root.
test.runIf(process.platform === "linux")("/proc/nope -> a failure, at once", () => {
  expect(() => makeAgentFolder("/proc/nope/agent")).toThrow(/cannot be made \(ENOENT\)/);
});

test("a folder in which this user may write nothing -> no failure: commands that only read work there", async () => {
  const above = join(await tempFolder(), "above");
  await mkdir(above, { mode: 0o500 });
  expect(() => makeAgentFolder(join(above, "agent"))).not.toThrow();
  await chmod(above, 0o700);
});
