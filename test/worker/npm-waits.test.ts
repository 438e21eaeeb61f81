/**
 * Owns: servers whose package npm fetches slowly, or not at all, in the packed worker with the real npm and a registry on
 * loopback: the sign of life, the one sentence, whose time a start takes, and that other servers do not wait.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeAll, expect, test } from "vitest";
import type { ServerStatus } from "../../src/shared/protocol/session.ts";
import { forWholeFile } from "../support/cleanup.ts";
import { freePort } from "../support/free-port.ts";
import type { Registry } from "../support/npm-registry.ts";
import { MEMORY, startNpxRegistry } from "./npx-registry.ts";
import { createPlace, fixture, type Started, start } from "./support.ts";

let registry: Registry;
beforeAll(async () => {
  registry = await forWholeFile(startNpxRegistry);
});
afterEach(() => registry.behave(undefined));

/** A session with a server of npx, and one beside it. npm's cache is empty. */
async function session(args: string[], { url = registry.url, more = {} } = {}): Promise<Started> {
  const place = await createPlace();
  const env = {
    npm_config_registry: url,
    npm_config_cache: join(place.agentDir, "npm-cache"),
    npm_config_userconfig: join(place.agentDir, "npmrc"),
    MEMORY_FILE_PATH: join(place.agentDir, "memory.json"),
  };
  const slow = { command: "npx", args: ["-y", ...args], env, ...more };
  return start({ slow, beside: fixture("live.mjs") }, { place });
}

const refusing = (status: number): Parameters<typeof session> => {
  registry.behave(() => ({ status }));
  return [[MEMORY]];
};

const statusOf = async ({ runtime }: Started, name = "slow"): Promise<ServerStatus | undefined> =>
  (await runtime.ask("status", {})).servers.find((server) => server.name === name);

test("a slow registry -> npm is named with the seconds and the files, the start's own limit begins with the program, the server connects", async () => {
  registry.behave(() => ({ delayMs: 1_500 }));
  const at = await session([MEMORY], { more: { startupTimeoutMs: 2_500 } });
  const waited: string[] = [];
  await at.event("server", ({ status }) => {
    if (status.waits !== undefined) waited.push(status.waits);
    return status.name === "slow" && status.state === "connected";
  });
  expect(waited[0]).toMatch(/^npm fetches @modelcontextprotocol\/server-memory, [23] s, /);
  expect(waited.some((text) => /, \d+ files?$/.test(text))).toBe(true);
  const status = await statusOf(at);
  expect(status).toMatchObject({ state: "connected" });
  expect(status).not.toHaveProperty("waits");
});

test("a registry that never answers -> a sign of life each second, the others work, a cancelled trial and the end of the session end npm", async () => {
  registry.behave(() => "silent");
  const at = await session([MEMORY]);
  await at.event("server", ({ status }) => status.waits?.endsWith("no answer of its registry yet") === true);
  expect((await at.call("beside", "work", {})).isError).toBeFalsy();

  const over = new AbortController();
  const since = at.events.length;
  const entry = {
    command: "npx",
    args: ["-y", MEMORY],
    env: {
      npm_config_registry: registry.url,
      npm_config_cache: join(at.agentDir, "other-cache"),
      PATH: process.env.PATH ?? "",
    },
  };
  const trial = at.runtime.ask("tryServer", { name: "tried", entry, project: false }, over.signal);
  trial.catch(() => undefined);
  const { waits } = await at.event("trying", () => true, since);
  expect(waits).toContain("npm fetches @modelcontextprotocol/server-memory");
  over.abort();
  await expect(trial).rejects.toMatchObject({ code: "cancelled" });
});

test.each<[string, () => Promise<Parameters<typeof session>>, RegExp]>([
  [
    "nothing listens",
    async () => [[MEMORY], { url: `http://127.0.0.1:${await freePort()}/` }],
    /cannot be reached \(ECONNREFUSED\)\.$/,
  ],
  [
    "a name that nobody knows",
    async () => [[MEMORY], { url: "http://registry.invalid/" }],
    /registry\.invalid cannot be found \((?:ENOTFOUND|EAI_AGAIN)\)\.$/,
  ],
  ["no such package", async () => [["pmt-no-such-package"]], /has no package pmt-no-such-package\.$/],
  ["no such version", async () => [["semver@99"]], /has no version semver@99\.$/],
  [
    "a sign-in is wanted",
    async () => refusing(401),
    /wants a sign-in for @modelcontextprotocol\/server-memory \(E401\)\.$/,
  ],
  ["refused", async () => refusing(403), /refuses @modelcontextprotocol\/server-memory \(403\)\.$/],
  [
    "only npm understands the arguments",
    async () => [["--prefer-online", "pmt-no-such-package"]],
    /has no package pmt-no-such-package/,
  ],
])(
  "%s -> one sentence within npm's own attempts, which reconnect and a call give too, and the doctor",
  async (_what, given, sentence) => {
    const at = await session(...(await given()));
    const { status } = await at.event(
      "server",
      (event) => event.status.name === "slow" && event.status.state === "failed",
    );
    expect(status.error?.message).toMatch(/^slow cannot be started: npm's registry /);
    expect(status.error?.message).toMatch(sentence);
    expect(status.error?.remedy).toBeTruthy();
    const error = await at.failedCall("slow", "anything");
    expect(error.message).toBe(status.error?.message);
    const { findings } = await at.runtime.ask("diagnose", {});
    expect(findings.filter(({ server }) => server === "slow")).toMatchObject([{ id: "npx" }]);
  },
);

test("an installed package and no network -> the installed one starts", async () => {
  const at = await session([MEMORY]);
  await at.event("server", ({ status }) => status.name === "slow" && status.state === "connected");
  registry.behave(() => ({ status: 503 }));
  const since = at.events.length;
  await rm(join(at.agentDir, "mcp-npx-cache.json"));
  await at.runtime.ask("reconnect", { server: "slow" });
  await at.event("server", ({ status }) => status.name === "slow" && status.state === "connected", since);
  expect(await at.log()).toMatch(
    /slow starts as it is installed, because npm's registry \S+ has a fault \(503\)/,
  );
});
