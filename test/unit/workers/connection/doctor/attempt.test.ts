/** Owns: the attempt to connect the named server, its steps, and what is said about starts and calls near their limits. */
import { describe, expect, test } from "vitest";
import type { Finding } from "../../../../../src/shared/protocol/doctor.ts";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import type { Examined } from "../../../../../workers/connection/doctor/check.ts";
import { attempt } from "../../../../../workers/connection/doctor/states.ts";
import { judgeTimes } from "../../../../../workers/connection/doctor/tools.ts";
import { examined, makeInput } from "./support.ts";

describe("attempt", () => {
  const stagesOf = async (server: Examined, ms?: number): Promise<{ found: Finding[]; stages: string[] }> => {
    const input = makeInput([server]);
    const found = await attempt(server, input, ms);
    return { found, stages: input.stages.map(({ name, ok }) => `${name} ${ok}`) };
  };

  test("it connects -> one step", async () => {
    const { found, stages } = await stagesOf(examined("s", { command: "c" }));
    expect([found, stages]).toEqual([[], ["start, handshake and list of tools true"]]);
  });

  test("it fails -> the step failed, and the state tells why", async () => {
    const connect = () => Promise.reject(new ThreadsError("connect_failed", "no"));
    const { found, stages } = await stagesOf(examined("s", { command: "c" }, {}, { connect }));
    expect([found, stages]).toEqual([[], ["start, handshake and list of tools false"]]);
  });

  test("it takes too long -> a warning, and nobody waits", async () => {
    const connect = (): Promise<never> => new Promise(() => undefined);
    const { found } = await stagesOf(examined("s", { command: "c" }, {}, { connect }), 1);
    expect(found).toMatchObject([{ id: "time-out", severity: "warning" }]);
  });

  test("it is switched off -> not connected", async () => {
    const connect = () => Promise.reject(new Error("asked"));
    const { found, stages } = await stagesOf(
      examined("s", { command: "c", enabled: false }, {}, { connect }),
    );
    expect(found).toMatchObject([{ severity: "note", remedy: "/mcp enable s" }]);
    expect(stages).toEqual([]);
  });

  test.each([
    ["answers", async (): Promise<void> => undefined, [], true],
    [
      "is silent",
      (): Promise<void> => Promise.reject(new Error("late")),
      [expect.objectContaining({ id: "ended" })],
      false,
    ],
  ] as const)("it is connected and %s -> a ping, no new connection", async (_title, ping, expected, ok) => {
    const server = examined("s", { command: "c" }, {}, { ifConnected: (task) => task({ ping }) });
    const { found, stages } = await stagesOf(server);
    expect(found).toEqual(expected);
    expect(stages).toEqual([`ping ${ok}`]);
  });
});

describe("judgeTimes", () => {
  const limits = { startMs: 30_000, callMs: 60_000 };
  test.each([
    ["nothing is known", { slowestCallMs: 0, lateCalls: 0 }, []],
    ["half of the start's limit", { startMs: 15_000, slowestCallMs: 0, lateCalls: 0 }, []],
    [
      "more than half",
      { startMs: 15_001, slowestCallMs: 0, lateCalls: 0 },
      ["warning: Its last start took 15.0 s of the 30.0 s that it may take."],
    ],
    [
      "a slow call",
      { slowestCallMs: 50_000, lateCalls: 0 },
      ["note: Its slowest call took 50.0 s, and 60.0 s is the limit without progress."],
    ],
    [
      "late calls",
      { slowestCallMs: 59_000, lateCalls: 2 },
      ["warning: 2 calls got no answer within 60.0 s."],
    ],
  ])("%s", (_title, timings, expected) => {
    expect(judgeTimes("s", timings, limits).map(({ severity, title }) => `${severity}: ${title}`)).toEqual(
      expected,
    );
  });
});
