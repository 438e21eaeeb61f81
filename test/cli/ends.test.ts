/** Owns: the end of the command in the middle of a call: no server process stays, and the exit code says why. */
import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { family } from "../support/long.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { fixtureServer, type Running, startCli } from "./support.ts";

let home: PiHome;
beforeAll(async () => {
  home = await forWholeFile(() => makeHome());
  const mcpServers = {
    waits: fixtureServer("waits.mjs"),
    stays: fixtureServer("ignores-end.mjs"),
  };
  await home.writeMcp({ mcpServers });
});

let calls = 0;

interface Called extends Running {
  /** The call is answered once this file exists. */
  file: string;
  /** Pids of the server's processes. */
  servers: number[];
}

/** Starts a call, and waits until its server has it. */
async function startCall(server: "waits" | "stays", mark: string): Promise<Called> {
  const arrived = join(home.dir, `arrived-${++calls}`);
  const file = join(home.dir, `answer-${calls}`);
  const args = { file, arrived };
  const running = startCli(home, ["call", server, "work", "--args", JSON.stringify(args)], {
    env: { CLI_TEST_MARK: mark },
  });
  const isThere = async (): Promise<boolean> =>
    server === "waits"
      ? access(arrived).then(
          () => true,
          () => false,
        )
      : (await serversOf(mark, running)).length > 0;
  await expect.poll(isThere).toBe(true);
  return { ...running, file, servers: await serversOf(mark, running) };
}

const serversOf = async (mark: string, { child }: Running): Promise<number[]> =>
  (await processesWithMarker(`CLI_TEST_MARK=${mark}`))
    .map(({ pid }) => pid)
    .filter((pid) => pid !== child.pid);

describe("a signal in the middle of a call", () => {
  // A server that ignores its end, below, is left by SIGINT.
  test.each(
    family<readonly [NodeJS.Signals, number]>([
      ["SIGTERM", 143],
      ["SIGINT", 130],
      ["SIGHUP", 129],
      ["SIGQUIT", 131],
    ]),
  )("%s -> code %d, nothing on stdout, no server stays", async (signal, code) => {
    const call = await startCall("waits", signal);
    expect(call.servers.length).toBeGreaterThan(0);
    call.child.kill(signal);
    expect(await call.ended).toMatchObject({ code, signal: null, stdout: "", stderr: "" });
    expect(await waitGone(call.servers)).toEqual([]);
  });

  test("SIGKILL -> the server ends with its stdin, once it has done what it was asked", async () => {
    const call = await startCall("waits", "SIGKILL");
    call.child.kill("SIGKILL");
    expect(await call.ended).toMatchObject({ signal: "SIGKILL" });
    expect((await serversOf("SIGKILL", call)).length).toBeGreaterThan(0);
    await writeFile(call.file, "");
    expect(await waitGone(call.servers)).toEqual([]);
  });

  test("a server that ignores SIGTERM and the end of its stdin is killed, also by a second signal", async () => {
    const [first, second] = await Promise.all([startCall("stays", "once"), startCall("stays", "twice")]);
    first.child.kill("SIGINT");
    second.child.kill("SIGINT");
    second.child.kill("SIGTERM");
    expect((await first.ended).code).toBe(130);
    // The two signals may arrive in either order.
    expect([130, 143]).toContain((await second.ended).code);
    expect(await waitGone([...first.servers, ...second.servers])).toEqual([]);
  });
});

describe("nobody reads the output any more", () => {
  test("stdout is closed during a call -> no word on stderr, no server stays", async () => {
    const call = await startCall("waits", "closed");
    call.child.stdout?.destroy();
    // The call's answer is the first write into the closed pipe.
    await writeFile(call.file, "");
    const { code, stderr } = await call.ended;
    expect({ code, stderr }).toEqual({ code: 141, stderr: "" });
    expect(await waitGone(call.servers)).toEqual([]);
  });
});
