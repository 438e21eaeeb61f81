/**
 * Owns: which modules of a sign-in a session of the real Pi evaluates: none without a server that asks for a sign-in,
 * and with a stored token only those that read and send it.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { builtOutputs } from "../support/built-outputs.ts";
import type { PiHome } from "../support/pi-run.ts";
import { startProtectedServer } from "../support/protected-server.ts";
import { storeSignIn } from "../support/stored-sign-in.ts";
import { inTurn, type Turn } from "./in-turn.ts";
import { notingExtension } from "./sign-in-support.ts";
import { call, fixtureServer, onCleanup } from "./support.ts";

/** Below the home; another session begins without this file. */
const EVALUATED = "evaluated";

/** Each session has worker threads of its own, which evaluate their modules anew. */
const turn = inTurn({ extensions: async (at) => [await notingExtension(at, join(at.dir, EVALUATED))] });

/** The modules of the workers that a session evaluates while the model calls a tool. */
async function evaluatedIn(begin: Turn | ((at: PiHome) => Turn), tool: string): Promise<string[]> {
  const { at, prompt } = await turn(begin);
  const ends = await prompt(call("ToolSearch", { query: `select:web__${tool}` }), call(`web__${tool}`, {}));
  expect(ends.map(({ isError }) => isError)).toEqual([false, false]);
  const file = join(at.dir, EVALUATED);
  const outputs = await builtOutputs();
  const names = new Set((await readFile(file, "utf8")).trim().split("\n"));
  return [...names].flatMap((name) => outputs[`dist/workers/${name}`]?.sources ?? []);
}

/** Modules of a sign-in, but for the small ones that decide whether a sign-in applies. */
const ofSignIn = (modules: readonly string[]): string[] =>
  modules
    .filter((path) => /auth\/(discovery|grants|requests|sign-in|store|tokens)\/|oauth4webapi/.test(path))
    .map((path) => path.replace(/^workers\/connection\/auth\/([^/]+)\/.*$/, "$1"));

/** A server that takes `token` only; without one it takes every request. */
async function remote(token?: string): Promise<string> {
  const check = (sent: string | undefined): string[] | undefined => (sent === token ? [] : undefined);
  const server = await startProtectedServer({ issuers: [], check });
  onCleanup(() => server.close());
  return server.url;
}

test("a local server -> no module of HTTP and none of a sign-in", async () => {
  const modules = await evaluatedIn({ mcp: { mcpServers: { web: fixtureServer("live.mjs") } } }, "work");
  expect(modules.some((path) => path.startsWith("workers/connection/transports/stdio/"))).toBe(true);
  expect(modules.filter((path) => path.startsWith("workers/connection/web/"))).toEqual([]);
  expect(ofSignIn(modules)).toEqual([]);
});

test("a remote server that asks for no sign-in -> no module of a sign-in", async () => {
  const modules = await evaluatedIn({ mcp: { mcpServers: { web: { url: await remote() } } } }, "echo");
  expect(modules.some((path) => path.startsWith("workers/connection/transports/http/"))).toBe(true);
  expect(ofSignIn(modules)).toEqual([]);
});

test("a stored token -> the store and the tokens, and nothing that talks to an authorization server", async () => {
  const token = "access-of-a-stored-sign-in";
  const url = await remote(token);
  const modules = await evaluatedIn(
    {
      mcp: { mcpServers: { web: { url } } },
      fill: (folder) => storeSignIn({ agentDir: join(folder, ".pi", "agent"), server: "web", url, token }),
    },
    "echo",
  );
  expect([...new Set(ofSignIn(modules))].sort()).toEqual(["store", "tokens"]);
  // Of the system's credential store only what knows that nobody uses it.
  expect(modules.filter((path) => path.includes("auth/store/system/"))).toEqual([]);
});
