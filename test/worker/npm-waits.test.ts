/**
 * Owns: servers whose package npm fetches slowly, or not at all, in the packed worker with the real npm and a registry on
 * loopback: the sign of life, the one sentence, whose time a start takes, and that other servers do not wait.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, beforeEach, expect, test } from "vitest";
import type { ServerStatus } from "../../src/shared/protocol/session.ts";
import { forWholeFile } from "../support/cleanup.ts";
import { freePort } from "../support/free-port.ts";
import type { Registry } from "../support/npm-registry.ts";
import { MEMORY, startNpxRegistry } from "./npx-registry.ts";
import { createPlace, fixture, forRows, type Place, type Started, start } from "./support.ts";

let registry: Registry;
/** A port of loopback at which nothing listens. */
let unused: number;
/** Two packages have a status in the place of an answer. */
const statuses: Parameters<Registry["behave"]>[0] = (path) => {
  const [, status] = /^\/pmt-status-(\d+)$/.exec(path) ?? [];
  return status === undefined ? undefined : { status: Number(status) };
};
beforeAll(async () => {
  registry = await forWholeFile(startNpxRegistry);
});
beforeEach(() => registry.behave(statuses));

/** A server of npx. npm's cache is empty. */
const npxEntry = ({ agentDir }: Place, args: string[], url = registry.url, more = {}) => ({
  command: "npx",
  args: ["-y", ...args],
  env: {
    npm_config_registry: url,
    npm_config_cache: join(agentDir, "npm-cache"),
    npm_config_userconfig: join(agentDir, "npmrc"),
    MEMORY_FILE_PATH: join(agentDir, "memory.json"),
  },
  ...more,
});

/** A session with the server of npx, and one beside it. */
async function session(more = {}): Promise<Started> {
  const place = await createPlace();
  const slow = npxEntry(place, [MEMORY], registry.url, more);
  return start({ slow, beside: fixture("live.mjs") }, { place });
}

const statusOf = async ({ runtime }: Started, name = "slow"): Promise<ServerStatus | undefined> =>
  (await runtime.ask("status", {})).servers.find((server) => server.name === name);

test("a slow registry -> npm is named with the seconds and the files, the start's own limit begins with the program, the server connects", {
  tags: "thorough",
}, async () => {
  registry.behave(() => ({ delayMs: 1_500 }));
  const at = await session({ startupTimeoutMs: 2_500 });
  const waited: string[] = [];
  await at.event("server", ({ status }) => {
    if (status.waits !== undefined) waited.push(status.waits);
    return status.name === "slow" && status.state === "connected";
  });
  expect(waited[0]).toMatch(/^npm fetches, [23] s, .*: @modelcontextprotocol\/server-memory$/);
  expect(waited.some((text) => /, \d+ files?: /.test(text))).toBe(true);
  const status = await statusOf(at);
  expect(status).toMatchObject({ state: "connected" });
  expect(status).not.toHaveProperty("waits");
});

test("a registry that never answers -> a sign of life each second, the others work, a cancelled trial and the end of the session end npm", async () => {
  registry.behave(() => "silent");
  const at = await session();
  await at.event("server", ({ status }) => status.waits?.includes("no answer of its registry yet") === true);
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
  expect(waits).toMatch(/^npm fetches, .*: @modelcontextprotocol\/server-memory$/);
  over.abort();
  await expect(trial).rejects.toMatchObject({ code: "cancelled" });
});

/** The faults of a registry, each met by a server of its own. */
const FAULTS: [what: string, spec: string[], sentence: RegExp, url?: () => string][] = [
  ["nothing listens", [MEMORY], /cannot be reached \(ECONNREFUSED\)\.$/, () => `http://127.0.0.1:${unused}/`],
  [
    "a name that nobody knows",
    [MEMORY],
    /registry\.invalid cannot be found \((?:ENOTFOUND|EAI_AGAIN)\)\.$/,
    () => "http://registry.invalid/",
  ],
  ["no such package", ["pmt-no-such-package"], /has no package pmt-no-such-package\.$/],
  ["no such version", ["semver@99"], /has no version semver@99\.$/],
  ["a sign-in is wanted", ["pmt-status-401"], /wants a sign-in for pmt-status-401 \(E401\)\.$/],
  ["refused", ["pmt-status-403"], /refuses pmt-status-403 \(403\)\.$/],
  [
    "only npm understands the arguments",
    ["--prefer-online", "pmt-no-such-package"],
    /has no package pmt-no-such-package/,
  ],
];
const nameOf = (what: string): string => what.replaceAll(" ", "-");

/** One session for all of them. */
const faulty = forRows(async () => {
  unused = await freePort();
  const place = await createPlace();
  const servers = FAULTS.map(([what, spec, , url]) => [nameOf(what), npxEntry(place, spec, url?.())]);
  const at = await start(Object.fromEntries(servers), { place });
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  const { findings } = await at.runtime.ask("diagnose", {});
  return { at, findings };
});

test.each(FAULTS)(
  "%s -> one sentence within npm's own attempts, which reconnect and a call give too, and the doctor",
  async (what, _spec, sentence) => {
    const { at, findings } = await faulty();
    const name = nameOf(what);
    const status = await statusOf(at, name);
    expect(status).toMatchObject({ state: "failed" });
    expect(status?.error?.message.startsWith(`${name} cannot be started: npm's registry `)).toBe(true);
    expect(status?.error?.message).toMatch(sentence);
    expect(status?.error?.remedy).toBeTruthy();
    const error = await at.failedCall(name, "anything");
    expect(error.message).toBe(status?.error?.message);
    expect(findings.filter(({ server }) => server === name)).toMatchObject([{ id: "npx" }]);
  },
);

test("an installed package and no network -> the installed one starts", { tags: "thorough" }, async () => {
  const at = await session();
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
