/** Owns: when one server connects, gives its connection up and is connected again, without what it offers and its calls. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import { ServerLife } from "../../../../../workers/connection/servers/life.ts";
import { createParts } from "../../../../../workers/connection/servers/parts.ts";
import { createGate } from "../../../../../workers/shared/pace/pace.ts";
import { recordingLog } from "../../recording-log.ts";
import { definitionOf, fakeConnect, settle } from "./support.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const SHUTDOWN = { termMs: LIMITS.shutdownTermMs, killMs: LIMITS.shutdownKillMs };

function setup(entry: object = {}) {
  const { connect, openings, opening } = fakeConnect();
  const { log, lines } = recordingLog();
  const lifetime = new AbortController();
  const definition = definitionOf("s", entry);
  const told: string[] = [];
  const parts = createParts({
    definition: () => definition,
    lifetime: lifetime.signal,
    log,
    isOpen: (connection) => life.connection === connection,
    onLate: () => undefined,
  });
  const life = new ServerLife(
    {
      parts,
      limits: LIMITS,
      onStatus: () => told.push(life.phase.name),
      onTools: () => told.push("tools"),
    },
    {
      cwd: "/cwd",
      npxCacheFile: "/npx",
      log,
      emit: () => undefined,
      gate: createGate(10),
      settings: () => DEFAULT_SETTINGS,
      connect,
    },
  );
  const end = (): Promise<void> => {
    life.watch.close();
    life.dispatch({ type: "closed" });
    lifetime.abort();
    return life.ended();
  };
  return { life, openings, opening, lines, told, end };
}

test("three who want it at once -> one attempt, which each of them gets; the connection counts once it is listed", async () => {
  const { life, openings, opening, told } = setup();
  const waiting = [life.connect("background"), life.connect("call"), life.connect("user")];
  await settle();
  expect([openings.length, life.connected]).toEqual([1, undefined]);
  const connection = opening(0).open();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([connection]));
  expect(life.connected).toBe(connection);
  expect(told).toEqual(["connecting", "connected", "tools"]);
});

test("while its lists are asked for -> the connection is held, and the server is not connected", async () => {
  const { life, opening } = setup();
  const list = Promise.withResolvers<[]>();
  const wanted = life.connect("user");
  await settle();
  const connection = opening(0).open({ listTools: () => list.promise });
  await settle();
  expect([life.connection, life.connected]).toEqual([connection, undefined]);
  list.resolve([]);
  expect(await wanted).toBe(connection);
});

test("a disabled server -> the wish is refused and nothing is opened", async () => {
  const { life, openings } = setup({ enabled: false });
  await expect(life.connect("call")).rejects.toMatchObject({ code: "server_disabled" });
  expect([life.phase.name, openings.length]).toEqual(["disabled", 0]);
});

test("a failed attempt -> a call is refused until its time; the user's wish is not", async () => {
  const { life, openings, opening } = setup();
  const failed = life.connect("call").catch((error: unknown) => error);
  await settle();
  opening(0).fail(new ThreadsError("spawn_failed", "s: no such program."));
  expect(await failed).toMatchObject({ code: "spawn_failed" });
  await expect(life.connect("call")).rejects.toMatchObject({ data: { retryInMs: 60_000 } });
  life.connect("user").catch(() => undefined);
  await settle();
  expect(openings).toHaveLength(2);
});

test("a keep-alive server is dropped -> it is connected again after its pause, without a request", async () => {
  const { life, openings, opening, lines } = setup({ lifecycle: "keep-alive" });
  const wanted = life.connect("background");
  await settle();
  const connection = opening(0).open();
  await wanted;
  connection.end();
  expect(life.phase.name).toBe("idle");
  expect(lines.at(-1)).toMatch(/^warn s exited with code 1\./);
  await vi.advanceTimersByTimeAsync(LIMITS.reconnectMs);
  expect(openings).toHaveLength(2);
});

test("its sign-in is lost while it is connected -> the connection is closed and the log says why", async () => {
  const { life, opening, lines } = setup();
  const wanted = life.connect("user");
  await settle();
  const connection = opening(0).open();
  await wanted;
  opening(0).options.onAuthLost?.(new ThreadsError("needs_auth", "s needs a sign-in."));
  expect([life.phase.name, life.connection]).toEqual(["needs-auth", undefined]);
  expect(lines.at(-1)).toBe("warn s needs a sign-in.");
  await settle();
  expect(connection.closes).toHaveLength(1);
});

test("the end waits for the connection's close, in the time of a shutdown", async () => {
  const { life, opening, end } = setup();
  const closed = Promise.withResolvers<void>();
  const wanted = life.connect("user");
  await settle();
  const connection = opening(0).open({ close: () => closed.promise });
  await wanted;
  let isOver = false;
  const ended = end().then(() => {
    isOver = true;
  });
  await settle();
  expect([isOver, connection.closes]).toEqual([false, [SHUTDOWN]]);
  closed.resolve();
  await ended;
  expect(isOver).toBe(true);
});

test("the end during an attempt -> the attempt is given up, and the end waits for it", async () => {
  const { life, opening, end } = setup();
  const wanted = life.connect("user").catch((error: unknown) => error);
  await settle();
  await end();
  expect(opening(0).options.signal.aborted).toBe(true);
  expect(await wanted).toBeInstanceOf(ThreadsError);
});
