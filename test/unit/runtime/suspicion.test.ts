/** Owns: which servers stay held back across the workers of a session, and until when. */
import { describe, expect, test } from "vitest";
import { createSuspicion, type Suspicion } from "../../../src/runtime/suspicion.ts";
import { talkRecord } from "../../../src/shared/protocol/port.ts";
import type { ServerState } from "../../../src/shared/protocol/session.ts";
import { makeStatus } from "../server-status.ts";

const end = { reason: "exit code 7", outOfMemory: false };
const say = (suspicion: Suspicion, name: string, state: ServerState): void =>
  suspicion.see({ type: "server", status: makeStatus(name, { state }) });
const heldBack = (suspicion: Suspicion): string[] =>
  (suspicion.facts().heldBack ?? []).map(({ server }) => server);

/** A worker that dies while it handles a message of the server. */
function dieTalking(suspicion: Suspicion, server: string): string[] {
  const record = talkRecord(suspicion.startWorker());
  suspicion.see({ type: "talker", slot: 3, server });
  record.current[0] = 3;
  return suspicion.blame(end);
}

describe("createSuspicion", () => {
  test("a session without crashes -> no fact for the worker", () => {
    expect(createSuspicion().facts()).toEqual({});
  });

  test("a server that talked at the end of a worker -> held back, also after later ends that it did not cause", () => {
    const suspicion = createSuspicion();
    expect(dieTalking(suspicion, "a")).toEqual(["a"]);
    expect(dieTalking(suspicion, "b")).toEqual(["b"]);
    suspicion.startWorker();
    expect(suspicion.blame(end)).toEqual([]);
    expect(heldBack(suspicion)).toEqual(["a", "b"]);
  });

  test("connected because a call wanted it -> no longer held back, until it talks at an end again", () => {
    const suspicion = createSuspicion();
    dieTalking(suspicion, "a");
    suspicion.startWorker();
    say(suspicion, "a", "connecting");
    expect(heldBack(suspicion)).toEqual(["a"]);
    say(suspicion, "a", "connected");
    expect(heldBack(suspicion)).toEqual([]);
    expect(dieTalking(suspicion, "a")).toEqual(["a"]);
    expect(heldBack(suspicion)).toEqual(["a"]);
  });

  test("two ends while servers connect and nobody talks -> the second end holds back the servers that still connected", () => {
    const suspicion = createSuspicion();
    const die = (): string[] => {
      suspicion.startWorker();
      for (const name of ["a", "b", "c"]) say(suspicion, name, "connecting");
      say(suspicion, "a", "connected");
      return suspicion.blame(end);
    };
    expect(die()).toEqual([]);
    expect(die()).toEqual(["b", "c"]);
  });

  test("a slot of an earlier worker -> has no meaning in the next worker", () => {
    const suspicion = createSuspicion();
    dieTalking(suspicion, "a");
    const record = talkRecord(suspicion.startWorker());
    record.current[0] = 3;
    expect(suspicion.blame(end)).toEqual([]);
  });
});
