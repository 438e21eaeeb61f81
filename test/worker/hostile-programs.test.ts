/**
 * Owns: programs and `!commands` of servers from the user's own configuration and from a project, started in a clone
 * that holds a trap for each way in which a folder could decide which program starts.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type { Origin } from "../../workers/connection/config/entry/definition.ts";
import { resolveTarget } from "../../workers/connection/config/values/values.ts";
import { hasPython } from "../support/has-program.ts";
import { whatRan } from "../support/hostile-clone.ts";
import { type ClonePlace, definitionOf, hostilePlace } from "./clone-support.ts";
import { fixtures } from "./support.ts";

const live = new AbortController().signal;
const server = join(fixtures, "servers", "noisy.mjs");

let at: ClonePlace;
beforeEach(async () => {
  at = await hostilePlace();
});

describe("a program by its name", () => {
  test.each<[string, Origin, string]>([
    ["the user's own server", "user", ""],
    ["another program's server", "import", ""],
    ["an extension's server", "extension", ""],
    ["the project's server", "project-pi", "clone-tool: \n"],
  ])(
    "%s, a program that exists only in the clone -> runs only for the project's server",
    async (_title, origin, expected) => {
      const entry = { command: "clone-tool", env: { PATH: at.PATH } };
      await expect(at.start(entry, origin)).rejects.toMatchObject({
        code: expected === "" ? "spawn_failed" : "connect_failed",
      });
      expect(await whatRan(at.ran)).toBe(expected);
    },
  );

  test.each<Origin>(["user", "project-pi"])(
    "%s: a command with a path separator -> runs as written",
    async (origin) => {
      await expect(at.start({ command: "./clone-tool", args: ["x"] }, origin)).rejects.toThrow(
        /exited with code 1/,
      );
      expect(await whatRan(at.ran)).toBe("clone-tool: x\n");
    },
  );

  test("the user's own server starts programs by name later -> finds no program of the clone", async () => {
    const entry = {
      command: "sh",
      args: ["-c", `clone-tool; exec node "${server}"`],
      env: { PATH: at.PATH },
    };
    expect((await (await at.start(entry, "user")).listTools(live)).length).toBe(1);
    expect(await whatRan(at.ran)).toBe("");
  });

  test.skipIf(!hasPython()).each<[Origin, string]>([
    ["user", ""],
    ["project-pi", "clone_module.py\n"],
  ])(
    "%s: python -m -> imports a module of the clone only for the project's server",
    async (origin, expected) => {
      for (const name of ["json", "asyncio", "keyring"]) await rm(join(at.clone, `${name}.py`));
      const entry = { command: "python3", args: ["-u", "-m", "clone_module"] };
      await expect(at.start(entry, origin)).rejects.toThrow();
      expect(await whatRan(at.ran)).toBe(expected);
    },
  );
});

describe("a !command", () => {
  async function resolved(value: string, origin: Origin): Promise<string | undefined> {
    const target = await resolveTarget(definitionOf({ command: "x", env: { VALUE: value } }, origin), {
      env: { ...process.env, PATH: at.PATH },
      home: at.root,
      cwd: at.clone,
      signal: live,
      onSpawn: () => {},
      onExit: () => {},
    });
    return target.kind === "stdio" ? target.env.VALUE : undefined;
  }

  test("the user's own command -> runs in the home folder and finds no program of the clone", async () => {
    expect(await resolved("!pwd", "user")).toBe(at.root);
    expect(await resolved("!node -p 1; git --version >&2; echo $PATH", "user")).toBe(
      `1\n${process.env.PATH}`,
    );
    await expect(resolved("!clone-tool", "user")).rejects.toThrow(/ended with code 127/);
    expect(await whatRan(at.ran)).toBe("");
  });

  test.skipIf(!hasPython())("the user's own python command -> imports no module of the clone", async () => {
    expect(await resolved("!python3 -c 'import json; print(json.dumps([1]))'", "user")).toBe("[1]");
    expect(await whatRan(at.ran)).toBe("");
  });

  test("the project's command -> runs in the project", async () => {
    expect(await resolved("!pwd", "project-pi")).toBe(at.clone);
    await expect(resolved("!clone-tool", "project-pi")).rejects.toThrow(/ended with code 1\./);
    expect(await whatRan(at.ran)).toBe("clone-tool: \n");
  });
});
