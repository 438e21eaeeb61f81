/**
 * Attacks on the place, the socket and the secrets of the hub of shared servers: what other users and other programs of this
 * machine can do, and what a hub that was killed leaves. hub-sessions.test.ts has what servers and sessions do.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { answerHub } from "../../workers/connection/hub/ask.ts";
import { openHub, placeOf } from "../../workers/connection/hub/link.ts";
import {
  ensureFolder,
  hubPlace,
  placeFacts,
  readSecret,
  writeSecret,
} from "../../workers/shared/hub/place.ts";
import { HELLO_BYTES, newNonce } from "../../workers/shared/hub/wire.ts";
import { once } from "../e2e/support.ts";
import { onCleanup } from "../support/cleanup.ts";
import { endHub, type HubHome, hubHome, hubLog, reportOf, startHub, withHub } from "../support/hub.ts";
import { attach, joined } from "../support/hub-peer.ts";
import { family } from "../support/long.ts";
import { waitGone } from "../support/processes.ts";
import { removeFolder } from "../support/temp-folder.ts";

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

const whyNot = (home: HubHome): Promise<string> =>
  openHub(home.agentDir).then(
    (socket) => {
      socket.destroy();
      return "connected";
    },
    (error: unknown) => String(error),
  );

describe("the folder", () => {
  test.each<[string, (folder: string) => Promise<unknown>, RegExp]>([
    ["a file", (folder) => writeFile(folder, ""), /is not a folder; remove it/],
    [
      "open to others",
      (folder) => mkdir(folder).then(() => chmod(folder, 0o755)),
      /other users may open .*chmod 700/,
    ],
    [
      "a link to a private folder",
      (folder) => mkdir(`${folder}-x`, 0o700).then(() => symlink(`${folder}-x`, folder)),
      /is a link; remove it/,
    ],
    ["a link that leads nowhere", (folder) => symlink("/nowhere", folder), /is a link; remove it/],
  ])("%s -> no hub, and the folder is named", async (_, make, why) => {
    const home = await hubHome();
    const { folder } = home.place;
    onCleanup(() => rm(`${folder}-x`, { recursive: true, force: true }));
    await make(folder);
    const said = await whyNot(home);
    expect(said).toMatch(why);
    expect(said).toContain(folder);
    expect(await hubLog(home)).toBe("");
  });

  test.runIf(isRoot)("one of another user -> no hub, even if it is private", async () => {
    const home = await hubHome();
    await mkdir(home.place.folder, 0o700);
    await chown(home.place.folder, NOBODY, NOBODY);
    expect(await whyNot(home)).toMatch(/belongs to another user/);
  });

  test("ten hubs that end while sessions come -> each session has a hub; the last one leaves nothing in the temp folder", async () => {
    const home = await hubHome();
    const link = join(import.meta.dirname, "../../workers/connection/hub/link.ts");
    const { openHub }: typeof import("../../workers/connection/hub/link.ts") = await import(
      withHub("hub-link", link)
    );
    for (let round = 0; round < 10; round++) {
      const socket = await openHub(home.agentDir);
      socket.destroy();
      const ended = answerHub(home.agentDir, { stop: {} });
      // At any moment of the end.
      await sleep(round * 3);
      (await openHub(home.agentDir)).destroy();
      await ended.catch(() => undefined);
    }
    await answerHub(home.agentDir, { stop: {} });
    await expect.poll(() => existsSync(home.place.folder), { timeout: 10_000 }).toBe(false);
  });

  test("a hub that ends removes it while a person asks what the hub runs -> nobody makes it again", async () => {
    const { agentDir, place } = await hubHome();
    for (let round = 0; round < 300; round++) {
      await mkdir(place.folder, { mode: 0o700 });
      const asked = answerHub(agentDir, {});
      // At any moment of the look.
      for (let turn = 0; turn < round % 30; turn++) await new Promise((resolve) => setImmediate(resolve));
      await rm(place.folder, { recursive: true });
      expect(await asked).toEqual({});
      expect(existsSync(place.folder)).toBe(false);
    }
  });

  test("it is removed while the hub runs -> the hub and its servers end", async () => {
    const home = await hubHome();
    const hub = await startHub(home, { times: { endMs: 60_000, lookMs: 50 } });
    const peer = await joined(home);
    const server = Number(await peer.call({ do: "pid" }));
    await rm(home.place.folder, { recursive: true });
    expect(await waitGone([hub, server])).toEqual([]);
    expect(await hubLog(home)).toContain("its folder is gone");
  });

  test("it is removed and another hub has taken its place -> the old hub ends, and the new one's socket, list and servers stay", async () => {
    const home = await hubHome();
    const old = await startHub(home, { times: { endMs: 60_000, lookMs: 1_000 } });
    const first = await joined(home);
    const left = Number(await first.call({ do: "pid" }));
    await rm(home.place.folder, { recursive: true });
    const hub = await startHub(home);
    const second = await joined(home);
    const server = await second.call({ do: "pid" });
    expect(await waitGone([old, left])).toEqual([]);
    await expect.poll(() => existsSync(home.place.servers)).toBe(true);
    expect(existsSync(home.place.socket)).toBe(true);
    expect((await reportOf(home)).pid).toBe(hub);
    const third = await joined(home);
    expect(await third.call({ do: "pid" })).toBe(server);
  });

  test("paths that are too long for a socket -> the next folder is taken; none is short enough -> one sentence with what to do", () => {
    const long = `/${"x".repeat(100)}`;
    const facts = { ...placeFacts("/agent", "1"), runtimeFolder: long, tempFolder: long };
    expect(hubPlace(facts).folder).toMatch(/^\/tmp\/pi-mcp-/);
    expect(hubPlace({ ...facts, runtimeFolder: undefined, tempFolder: "/short" }).folder).toMatch(
      /^\/short\//,
    );
    expect(Buffer.byteLength(hubPlace(facts).socket)).toBeLessThan(104);
  });

  const facts = placeFacts("/agent", "1");
  test.each<[string, Partial<typeof facts>]>([
    ...[0, 1, 2, 3].map((at): [string, Partial<typeof facts>] => [
      `namespace ${at} of the kernel`,
      { namespaces: facts.namespaces.with(at, "other:[1]") },
    ]),
    ["effective group", { groups: facts.groups.with(0, 4_711) }],
    ["group more", { groups: [...facts.groups, 4_711] }],
    ["umask", { umask: "Umask:\t0111" }],
  ])("another %s, which servers inherit of the hub -> another hub", (_, changes) => {
    expect(hubPlace({ ...facts, ...changes }).folder).not.toBe(hubPlace(facts).folder);
    expect(hubPlace(placeFacts("/agent", "1"))).toEqual(hubPlace(facts));
  });

  test.runIf(process.platform === "linux")("the namespaces and the umask are the kernel's", () => {
    expect(facts.namespaces).toEqual(
      ["mnt", "pid", "net", "user"].map((kind) => expect.stringMatching(`^${kind}:\\[\\d+\\]$`)),
    );
    expect(facts.umask).toMatch(/^Umask:\t0[0-7]{3}$/);
  });

  test("the same groups in another order -> the same hub; a system without groups -> none counts", () => {
    const { getgroups, getegid } = process;
    onCleanup(() => Object.assign(process, { getgroups, getegid }));
    Object.assign(process, { getegid: () => 5, getgroups: () => [20, 5, 100] });
    const { groups } = placeFacts("/agent", "1");
    expect(groups).toEqual([5, 20, 100]);
    // As Bun answers.
    Object.assign(process, { getgroups: () => [100, 20] });
    expect(placeFacts("/agent", "1").groups).toEqual(groups);
    Object.assign(process, { getgroups: undefined, getegid: undefined });
    expect(placeFacts("/agent", "1").groups).toEqual([undefined]);
  });

  test.runIf(process.platform === "linux")(
    "the hub starts in its own folder, since a runtime may obey files of the folder that it starts in",
    async () => {
      const home = await hubHome();
      (await openHub(home.agentDir)).destroy();
      const { pid } = await reportOf(home);
      expect(await readlink(`/proc/${pid}/cwd`)).toBe(await realpath(home.place.folder));
    },
  );

  test.runIf(isRoot)(
    "a runtime folder that is missing or of another user -> the temp folder is taken",
    async () => {
      const { run } = await homeInRun();
      expect(placeFacts("/agent", "1").runtimeFolder).toBe(run);
      await chown(run, NOBODY, NOBODY);
      expect(placeFacts("/agent", "1").runtimeFolder).toBeUndefined();
      await rm(run, { recursive: true });
      expect(placeFacts("/agent", "1").runtimeFolder).toBeUndefined();
    },
  );
});

/** A program that answers at the hub's socket, with a secret beside it that it cannot read. */
async function squat({ place }: HubHome, onConnection: (socket: Socket) => void): Promise<Socket[]> {
  await ensureFolder(place);
  await writeSecret(place);
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(place.socket, resolve));
  onCleanup(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return sockets;
}

/** A file system of 64 KB. Needs root. */
function mounted(agentDir: string, at: string, ...options: string[]): boolean {
  const done = spawnSync("mount", [
    "-t",
    "tmpfs",
    "-o",
    ["size=64k", "mode=700", ...options].join(),
    "tmpfs",
    at,
  ]);
  if (done.status !== 0) return false;
  onCleanup(async () => {
    await endHub(agentDir);
    spawnSync("umount", ["-l", at]);
  });
  return true;
}

/** A home whose hub has its folder in the runtime folder `<agent folder>/run`. */
async function homeInRun(): Promise<{ agentDir: string; run: string }> {
  const { agentDir } = await hubHome();
  const run = join(agentDir, "run");
  await mkdir(run, 0o700);
  const { XDG_RUNTIME_DIR } = process.env;
  process.env.XDG_RUNTIME_DIR = run;
  onCleanup(() => {
    if (XDG_RUNTIME_DIR === undefined) delete process.env.XDG_RUNTIME_DIR;
    else process.env.XDG_RUNTIME_DIR = XDG_RUNTIME_DIR;
  });
  return { agentDir, run };
}

describe("the disk", () => {
  test.runIf(isRoot)("read-only -> no hub, and the folder is named", async ({ skip }) => {
    const { agentDir, run } = await homeInRun();
    if (!mounted(agentDir, run, "ro")) skip("the system does not let tests mount");
    const home = { agentDir, place: placeOf(agentDir) };
    expect(await whyNot(home)).toMatch(/its folder cannot be made: EROFS.*\/run\/pi-mcp-/);
  });

  test.runIf(isRoot)(
    "full when the secret is written -> no hub; with room again the next session has one",
    async ({ skip }) => {
      const { agentDir, run } = await homeInRun();
      if (!mounted(agentDir, run)) skip("the system does not let tests mount");
      const place = placeOf(agentDir);
      await ensureFolder(place);
      const big = join(run, "big");
      await writeFile(big, "x".repeat(1024 * 1024)).catch(() => undefined);
      expect(await whyNot({ agentDir, place })).toMatch(/ENOSPC/);
      expect(existsSync(place.secret)).toBe(false);
      await unlink(big);
      const peer = await joined({ agentDir });
      expect(await peer.call({ do: "echo", text: "room" })).toBe("room");
    },
  );

  test.runIf(isRoot)(
    "full while the hub runs -> servers start and answer; the list of processes is what is missing",
    async ({ skip }) => {
      const { agentDir, run } = await homeInRun();
      if (!mounted(agentDir, run)) skip("the system does not let tests mount");
      const home = { agentDir, place: placeOf(agentDir) };
      await startHub(home);
      await writeFile(join(run, "big"), "x".repeat(1024 * 1024)).catch(() => undefined);
      const peer = await joined(home);
      expect(await peer.call({ do: "echo", text: "no room" })).toBe("no room");
      await expect.poll(() => hubLog(home)).toMatch(/servers\.json cannot be written: ENOSPC/);
      expect((await reportOf(home)).servers).toHaveLength(1);
    },
  );

  test("a log that cannot be written -> the hub works without it", async () => {
    const home = await hubHome();
    await mkdir(join(home.agentDir, "mcp-hub.log"));
    const peer = await joined(home);
    expect(await peer.call({ do: "echo", text: "unlogged" })).toBe("unlogged");
  });
});

type Squatter = [does: string, (socket: Socket) => void, why: RegExp];

describe("a foreign program at the socket", () => {
  test.each<Squatter>([
    ["garbage", (socket) => socket.write("x".repeat(100_000)), /another program answers at/],
    ["a wrong proof", (socket) => socket.write(Buffer.alloc(HELLO_BYTES, 7)), /another program answers at/],
    [
      "the nonce again as its proof",
      (socket) => socket.on("data", (nonce) => socket.write(Buffer.concat([nonce, nonce]))),
      /another program answers at/,
    ],
    // Each of these takes as long as a hub may take to answer.
    ...family<Squatter>([
      ["an end at once", (socket) => socket.end(), /closes every connection/],
      ["half a proof, then its end", (socket) => socket.end("x".repeat(10)), /closes every connection/],
      ["silence", () => undefined, /does not answer/],
    ]),
  ])(
    "%s -> no hub, one reason; the socket stays, nothing but a random value was sent",
    async (_, does, why) => {
      const home = await hubHome();
      let bytes = 0;
      const sockets = await squat(home, (socket) => {
        socket.on("data", (chunk) => (bytes += chunk.length));
        does(socket);
      });
      const { ino } = await lstat(home.place.socket);
      expect(await whyNot(home)).toMatch(why);
      expect((await lstat(home.place.socket)).ino).toBe(ino);
      // What the last connection was sent may arrive behind the reason.
      await expect.poll(() => bytes).toBe(sockets.length * 32);
      expect(await hubLog(home)).toBe("");
    },
  );
});

describe("the secret", () => {
  test.each<[string, (secret: string) => Promise<unknown>, RegExp]>([
    ["damaged", (secret) => writeFile(secret, "0".repeat(97), { mode: 0o600 }), /it is damaged; remove it/],
    ["empty", (secret) => writeFile(secret, "", { mode: 0o600 }), /it is damaged; remove it/],
    ["of 10 MB", (secret) => writeFile(secret, "0".repeat(10_000_000), { mode: 0o600 }), /remove it/],
    ["readable for others", (secret) => chmod(secret, 0o644), /other users may read it; remove it/],
    [
      "a link",
      (secret) => rename(secret, `${secret}-x`).then(() => symlink(`${secret}-x`, secret)),
      /not a regular file; remove it/,
    ],
    ["a folder", (secret) => unlink(secret).then(() => mkdir(secret)), /not a regular file; remove it/],
  ])("%s -> no hub, the file is named and stays", async (_, spoil, why) => {
    const home = await hubHome();
    await ensureFolder(home.place);
    await writeSecret(home.place);
    await spoil(home.place.secret);
    const said = await whyNot(home);
    expect(said).toMatch(why);
    expect(said).toContain(home.place.secret);
    expect(existsSync(home.place.secret)).toBe(true);
    await rm(home.place.secret, { recursive: true });
  });

  test.runIf(isRoot)("one of another user -> no hub", async () => {
    const home = await hubHome();
    await ensureFolder(home.place);
    await writeSecret(home.place);
    await chown(home.place.secret, NOBODY, NOBODY);
    expect(await whyNot(home)).toMatch(/other users may read it/);
    await unlink(home.place.secret);
  });

  test("removed while the hub runs, as by a cleaner of the temp folder -> the hub writes it again, the session waits and has no other hub", async () => {
    const home = await hubHome();
    const hub = await startHub(home, { times: { endMs: 60_000, lookMs: 500 } });
    const peer = await joined(home);
    const open = peer.call({ do: "echo", text: "open", ms: 1_500 });
    const secret = await readFile(home.place.secret, "utf8");
    await unlink(home.place.secret);
    const other = await joined(home);
    expect(await other.call({ do: "pid" })).toBe(String(peer.process.pid));
    expect(await open).toBe("open");
    expect(await readFile(home.place.secret, "utf8")).toBe(secret);
    expect((await reportOf(home)).pid).toBe(hub);
  });

  test("replaced while the hub runs -> a session with another secret is refused, and takes no server away", async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    const peer = await joined(home);
    const kept = await readFile(home.place.secret);
    await writeSecret(home.place);
    expect(await whyNot(home)).toMatch(/another program answers at/);
    await writeFile(home.place.secret, kept);
    expect((await reportOf(home)).pid).toBe(hub);
    expect(await peer.call({ do: "echo", text: "still" })).toBe("still");
  });

  test("the hub with a server that has a secret in its environment -> neither secret is in the hub's arguments, environment or log, nor in a file", async () => {
    const home = await hubHome();
    const key = "pmt-resolved-s3cret";
    const socket = openHub(home.agentDir);
    const peer = await joined(home, { socket, env: { API_KEY: key } });
    const call = "pmt-s3cret-of-a-call";
    expect(await peer.call({ do: "echo", text: call })).toBe(call);
    const { pid } = await reportOf(home);
    const own = (await readSecret(home.place))?.key.toString("hex") ?? "none";
    // The hub writes its files later than it answers.
    await expect.poll(() => hubLog(home)).toContain("session");
    await expect.poll(() => readFile(home.place.servers, "utf8").catch(() => "")).toContain(`"pid"`);
    const seen = [
      await readFile(`/proc/${pid}/cmdline`, "utf8"),
      await readFile(`/proc/${pid}/environ`, "utf8"),
      await hubLog(home),
      await readFile(home.place.servers, "utf8"),
    ];
    for (const text of seen) for (const secret of [key, call, own]) expect(text).not.toContain(secret);
    const names = (seen[1] ?? "").split("\0").map((variable) => variable.split("=")[0]);
    // A shell adds its folder and how it was started.
    const allowed = [
      "HOME",
      "TMPDIR",
      "TEMP",
      "TMP",
      "LANG",
      "LC_ALL",
      "XDG_RUNTIME_DIR",
      "PWD",
      "SHLVL",
      "_",
      "",
    ];
    expect(names.filter((name) => !allowed.includes(name ?? ""))).toEqual([]);
    for (const file of [home.place.socket, home.place.secret, home.place.servers])
      expect((await lstat(file)).mode & 0o077).toBe(0);
  });
});

/** A connection that proves nothing. */
async function stranger({ place }: HubHome): Promise<Socket & { hasEnded: Promise<boolean> }> {
  const socket = connect(place.socket);
  socket.on("error", () => undefined);
  socket.resume();
  const hasEnded = new Promise<boolean>((resolve) => socket.once("close", () => resolve(true)));
  onCleanup(() => socket.destroy());
  await new Promise((resolve) => {
    socket.once("connect", resolve);
    socket.once("close", resolve);
  });
  return Object.assign(socket, { hasEnded });
}

describe("connections before their proof", () => {
  /** None of those that send something may end it. */
  const running = once(async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    return { home, hub, peer: await joined(home) };
  });

  test("one that sends nothing -> ended after its time; a session meanwhile is served", async () => {
    const home = await hubHome();
    await startHub(home);
    const silent = await stranger(home);
    const peer = await joined(home);
    expect(await peer.call({ do: "echo", text: "served" })).toBe("served");
    expect(await silent.hasEnded).toBe(true);
    await expect.poll(() => hubLog(home)).toContain("did not prove that it is of this user");
  });

  test.each<[string, Buffer]>([
    ["a wrong proof", Buffer.concat([newNonce(), Buffer.alloc(32, 1)])],
    ["1 MB", Buffer.alloc(1024 * 1024, 1)],
    ["a message without a proof", Buffer.from(`\0\0\0\0\x0f{"do":"stop"}   ${" ".repeat(60)}`)],
  ])("%s -> ended, nothing is done; a session is served", async (_, bytes) => {
    const { home, hub, peer } = await running();
    const from = performance.now();
    const foe = await stranger(home);
    foe.write(bytes);
    expect(await foe.hasEnded).toBe(true);
    expect(performance.now() - from).toBeLessThan(LIMITS.hubUnprovenMs + 10_000);
    expect(await peer.call({ do: "echo", text: "served" })).toBe("served");
    expect((await reportOf(home)).pid).toBe(hub);
  });

  test("40 that send nothing -> the ones beyond 32 end at once; a session waits and is served", async () => {
    const home = await hubHome();
    await startHub(home);
    const strangers = await Promise.all(Array.from({ length: 40 }, () => stranger(home)));
    const gone = new Set<Socket>();
    for (const one of strangers) void one.hasEnded.then(() => gone.add(one));
    const peer = await joined(home);
    expect(gone.size).toBeGreaterThanOrEqual(8);
    expect(await peer.call({ do: "echo", text: "served" })).toBe("served");
    await Promise.all(strangers.map(({ hasEnded }) => hasEnded));
  });

  test.each<[string, string]>([
    ["an unknown request", '{"do":"x"}'],
    ["an attach without a launch", '{"do":"attach"}'],
    ["null", "null"],
    ["no JSON", "{"],
  ])(
    "a session that has proved itself sends %s -> its connection ends, the hub and the others go on",
    async (_, text) => {
      const { home, hub, peer } = await running();
      const socket = await openHub(home.agentDir);
      const ended = new Promise((resolve) => socket.once("close", resolve));
      socket.resume();
      const head = Buffer.alloc(5);
      head.writeUInt32BE(Buffer.byteLength(text), 1);
      socket.write(Buffer.concat([head, Buffer.from(text)]));
      await ended;
      expect(await peer.call({ do: "echo", text: "served" })).toBe("served");
      expect((await reportOf(home)).pid).toBe(hub);
    },
  );
});

describe("what an earlier hub leaves", () => {
  test("a stale socket and a stale list of processes -> the next session starts a hub, and no process is ended by its pid alone", async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    process.kill(hub, "SIGKILL");
    await waitGone([hub]);
    expect(existsSync(home.place.socket)).toBe(true);
    // This process itself, with a start time that is not its own.
    const row = { pid: process.pid, ppid: 1, group: process.pid, started: "1" };
    await writeFile(home.place.servers, JSON.stringify([row, { ...row, pid: 1 }, { pid: -1 }, null, "x"]));
    const socket = openHub(home.agentDir);
    const peer = await joined(home, { socket });
    expect(await peer.call({ do: "echo", text: "new" })).toBe("new");
    expect((await reportOf(home)).pid).not.toBe(hub);
    // Longer than a hub gives what it has found.
    await sleep(LIMITS.closeKillMs + 500);
    expect(await peer.call({ do: "echo", text: "alive" })).toBe("alive");
  });

  test.each([
    ["half of one", "["],
    ["2 MB", "x".repeat(2 * 1024 * 1024)],
  ])("a damaged list of processes, %s -> the hub starts", async (_, text) => {
    const home = await hubHome();
    await ensureFolder(home.place);
    await writeFile(home.place.servers, text);
    await startHub(home);
    expect(await (await joined(home)).call({ do: "echo", text: "x" })).toBe("x");
  });

  test("hubs killed twice in a row, with servers that ignore the end of stdin -> the third hub ends them all", async () => {
    const home = await hubHome();
    const servers: number[] = [];
    for (const text of ["one", "two"]) {
      const hub = await startHub(home);
      const peer = await joined(home, { env: { IGNORES_END: "1", N: text } });
      const pid = Number(await peer.call({ do: "pid" }));
      await expect.poll(() => readFile(home.place.servers, "utf8")).toContain(`"pid":${pid}`);
      servers.push(pid);
      process.kill(hub, "SIGKILL");
      await waitGone([hub]);
      await unlink(home.place.socket);
    }
    await startHub(home);
    expect(await waitGone(servers)).toEqual([]);
  });

  test("its list of processes was removed, as by a cleaner of the temp folder -> it has written the list again, and the next hub ends its servers", async () => {
    const home = await hubHome();
    const hub = await startHub(home, { times: { endMs: 60_000, lookMs: 500 } });
    const peer = await joined(home, { env: { IGNORES_END: "1" } });
    const pid = Number(await peer.call({ do: "pid" }));
    const list = (): Promise<string> => readFile(home.place.servers, "utf8").catch(() => "");
    await expect.poll(list).toContain(`"pid":${pid}`);
    for (const file of [home.place.secret, home.place.servers]) await unlink(file);
    await expect.poll(list).toContain(`"pid":${pid}`);
    await expect.poll(() => existsSync(home.place.secret)).toBe(true);
    expect((await reportOf(home)).pid).toBe(hub);
    process.kill(hub, "SIGKILL");
    await waitGone([hub], 5_000);
    await unlink(home.place.socket);
    await startHub(home);
    expect(await waitGone([pid], 20_000)).toEqual([]);
  });

  test("a hub that is stopped answers nobody -> a session gives up and leaves its socket; the hub goes on later", async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    const peer = await joined(home);
    process.kill(hub, "SIGSTOP");
    onCleanup(() => process.kill(hub, "SIGCONT"));
    const { ino } = await lstat(home.place.socket);
    expect(await whyNot(home)).toMatch(/does not answer/);
    expect((await lstat(home.place.socket)).ino).toBe(ino);
    process.kill(hub, "SIGCONT");
    expect(await peer.call({ do: "echo", text: "later" })).toBe("later");
    expect((await reportOf(home)).pid).toBe(hub);
  });

  test("a hub that is stopped behind its proof -> the start fails with the reason; the hub goes on later, without that server", {
    tags: "thorough",
  }, async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    const peer = await joined(home);
    const socket = await openHub(home.agentDir);
    process.kill(hub, "SIGSTOP");
    onCleanup(() => process.kill(hub, "SIGCONT"));
    await expect(attach(home, { socket: Promise.resolve(socket), env: { N: "2" } })).rejects.toThrow(
      /does not answer/,
    );
    process.kill(hub, "SIGCONT");
    expect(await peer.call({ do: "echo", text: "later" })).toBe("later");
    await expect.poll(async () => (await reportOf(home)).servers.length).toBe(1);
  });

  test("the hub's file is deleted while it runs -> it goes on: it starts servers, lists and stops them", async () => {
    const home = await hubHome();
    const file = join(home.agentDir, "hub.mjs");
    await writeFile(file, await readFile(join(import.meta.dirname, "../../dist/workers/hub.js")));
    const hub = await startHub(home, { file });
    await unlink(file);
    const peer = await joined(home);
    expect(await peer.call({ do: "echo", text: "goes on" })).toBe("goes on");
    expect(await reportOf(home)).toMatchObject({ pid: hub, servers: [{ labels: ["s"] }] });
  });

  test("two versions at once -> a hub each; the end of one leaves the other", async () => {
    const home = await hubHome();
    const place = hubPlace(placeFacts(home.agentDir, "0.0.1"));
    onCleanup(() => removeFolder(place.folder));
    const other = await startHub(home, { place });
    const hub = await startHub(home);
    const peer = await joined(home);
    expect((await reportOf(home)).pid).toBe(hub);
    process.kill(other, "SIGTERM");
    expect(await waitGone([other])).toEqual([]);
    expect(existsSync(place.socket)).toBe(false);
    expect(await peer.call({ do: "echo", text: "mine" })).toBe("mine");
  });

  test("a second hub at the same place -> it refuses to start, the first goes on", async () => {
    const home = await hubHome();
    const hub = await startHub(home);
    const peer = await joined(home);
    await expect(startHub(home)).rejects.toThrow(/EADDRINUSE/);
    expect(await peer.call({ do: "echo", text: "first" })).toBe("first");
    expect((await reportOf(home)).pid).toBe(hub);
  });
});
