/** Owns: `hub` of the packed command: what the hub of shared servers runs, for whom, what keeps two apart, and its end. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { waitGone } from "../support/processes.ts";
import { fixtureServer, type Run, type RunOptions, runCli } from "./support.ts";

interface Shown {
  hub: { pid: number; servers: { labels: string[]; pid: number; sessions: number[]; differs: string[] }[] };
}

async function homeWithShared() {
  const home: PiHome = await makeHome();
  const shared = { ...fixtureServer("echoes.mjs"), shared: true };
  const env = { RECORD: join(home.dir, "calls"), NAME: "one" };
  const mcpServers = { echo: { ...shared, env }, other: { ...shared, env: { ...env, NAME: "two" } } };
  await home.writeMcp({ mcpServers });
  const cli = (args: readonly string[], options?: RunOptions): Promise<Run> => runCli(home, args, options);
  const hub = async (): Promise<Shown["hub"]> => JSON.parse((await cli(["hub", "--json"])).stdout).hub;
  return { cli, hub };
}

test("hub, calls of two servers of one program, stop of one, stop of all -> what runs, and nothing in the end", async () => {
  const { cli, hub } = await homeWithShared();
  expect(await cli(["hub"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^No shared server runs\./),
  });
  expect(await hub()).toBeNull();
  expect((await cli(["call", "echo", "work", "call=1"])).stdout).toBe("one 1\n");
  const warm = await hub();
  expect(warm.servers).toMatchObject([{ labels: ["echo"], sessions: [], differs: [] }]);
  expect((await cli(["call", "other", "work", "call=2"])).stdout).toBe("two 2\n");

  const { pid, servers } = await hub();
  expect(pid).toBe(warm.pid);
  expect(servers.map(({ labels, differs }) => [labels, differs])).toEqual([
    [["echo"], ["NAME"]],
    [["other"], ["NAME"]],
  ]);
  const text = (await cli(["hub"])).stdout;
  expect(text).toMatch(/^The hub of shared servers: pid \d+, up less than a min, 2 servers, [\d.]+ MB\n/);
  expect(text).toMatch(/\necho: pid \d+, up less than a min, [\d.]+ MB, used by no session\n/);
  expect(text).not.toContain("two");

  expect(await cli(["hub", "stop", "nope"])).toMatchObject({
    code: 2,
    stderr: "pi-mcp-threads: No shared server named nope runs.\n  Shared now: echo, other.\n",
  });
  expect((await cli(["hub", "stop", "echo"])).stdout).toBe(
    "echo is ended, used by no session. The next call starts it again.\n",
  );
  expect((await hub()).servers.map(({ labels }) => labels)).toEqual([["other"]]);
  expect((await cli(["hub", "stop"])).stdout).toMatch(
    /^The hub and its 1 server are ended, used by no session\./,
  );
  expect(await waitGone([pid, ...servers.map((server) => server.pid)])).toEqual([]);
  expect(await cli(["hub", "stop"])).toMatchObject({ code: 0, stdout: "No shared server runs.\n" });
});
