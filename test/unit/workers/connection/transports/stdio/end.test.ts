/** Owns: how the process of a server is ended, step by step, and what is told of its end. The process is a fake. */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { describeExit, ProcessEnd } from "../../../../../../workers/connection/transports/stdio/end.ts";
import type { Killed, ServerProcess } from "../../../../../../workers/shared/programs/processes.ts";

class FakeProcess extends EventEmitter {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly pid: number | undefined;
  isUnreferenced = false;

  constructor(pid?: number) {
    super();
    this.pid = pid;
  }

  unref(): void {
    this.isUnreferenced = true;
  }

  exits(code: number | null, signal: NodeJS.Signals | null = null): void {
    this.emit("exit", code, signal);
    this.emit("close", code, signal);
  }
}

type Step = "end of stdin" | "SIGTERM" | "SIGKILL";

interface Behaviour {
  exitsAt?: Step;
  /** The system does not let us signal it. */
  refused?: boolean;
  /** It exits while the system refuses SIGKILL. */
  exitsMeanwhile?: boolean;
}

function start({ exitsAt, refused = false, exitsMeanwhile = false }: Behaviour = {}) {
  const child = new FakeProcess(42);
  const events: string[] = [];
  let hasExited = false;
  const reach = (step: Step): void => {
    events.push(step);
    if (step !== exitsAt) return;
    hasExited = true;
    if (step === "end of stdin") child.exits(0);
    else child.exits(null, step);
  };
  child.stdin.once("finish", () => reach("end of stdin"));
  const end = new ProcessEnd(child as unknown as ServerProcess, {
    onExit: (id) => events.push(`exit of ${id}`),
    onEnd: () => events.push("over"),
    onNote: (note) => events.push(note),
    kill: (_pid, signal): Killed => {
      if (hasExited) {
        events.push(`${signal} to the group`);
        return "gone";
      }
      if (refused) {
        if (exitsMeanwhile && signal === "SIGKILL") setImmediate(() => child.exits(0));
        return "refused";
      }
      reach(signal);
      return "sent";
    },
  });
  return { child, end, events };
}

const LAST = ["SIGKILL to the group", "exit of 42", "over"];
const soon = { termMs: 20, killMs: 40 };

describe("closeWithin, a process that ends", () => {
  test.each<[Step, string[], string]>([
    ["end of stdin", ["end of stdin", ...LAST], "exited with code 0"],
    ["SIGTERM", ["end of stdin", "SIGTERM", ...LAST], "was ended by SIGTERM"],
    ["SIGKILL", ["end of stdin", "SIGTERM", "SIGKILL", ...LAST], "was ended by SIGKILL"],
  ])("at %s -> no step more, then its group is killed", async (exitsAt, steps, exit) => {
    const { end, events } = start({ exitsAt });
    await end.closeWithin(soon);
    expect(events).toEqual(steps);
    expect(end.exit).toBe(exit);
  });

  test("by itself before -> nothing is sent", async () => {
    const { child, end, events } = start();
    child.exits(1);
    await end.exited;
    const before = [...events];
    await end.closeWithin(soon);
    expect(events).toEqual(before);
    expect(end.exit).toBe("exited with code 1");
  });

  test("closed twice -> its end is told once", async () => {
    const { end, events } = start({ exitsAt: "SIGTERM" });
    await Promise.all([end.closeWithin(soon), end.closeWithin(soon)]);
    expect(events.filter((event) => event === "over")).toHaveLength(1);
  });
});

describe("a process that the system does not let us end", () => {
  const NOTE = "still runs as process 42: the system refuses to end it";

  test("closeWithin -> settles, a note says so, nothing holds the worker", async () => {
    const { child, end, events } = start({ refused: true });
    await end.closeWithin(soon);
    expect(events).toEqual(["end of stdin", NOTE, "over"]);
    expect(child.isUnreferenced).toBe(true);
    expect([child.stdin, child.stdout, child.stderr].every(({ destroyed }) => destroyed)).toBe(true);
  });

  test("killNow -> the same at once; its exit later is told, its end no second time", async () => {
    const { child, end, events } = start({ refused: true });
    end.killNow();
    expect(events).toEqual([NOTE, "over"]);
    child.exits(0);
    await end.exited;
    expect(events).toEqual([NOTE, "over", "exit of 42"]);
  });

  test("that has just ended, for which macOS refuses too -> no note", async () => {
    const { end, events } = start({ refused: true, exitsMeanwhile: true });
    await end.closeWithin(soon);
    expect(events).toEqual(["end of stdin", "exit of 42", "over"]);
  });
});

describe("the exit", () => {
  test("while a child of the server holds its output -> told after a moment all the same", async () => {
    const { child, end, events } = start({ exitsAt: "SIGKILL" });
    child.emit("exit", 3, null);
    expect(end.exit).toBe("exited with code 3");
    expect(events).toEqual([]);
    await end.exited;
    expect(events.slice(-2)).toEqual(["exit of 42", "over"]);
    expect(child.stdout.destroyed && child.stderr.destroyed).toBe(true);
  });

  test("endsWithin -> false while it runs, true once it has ended", async () => {
    const { child, end } = start();
    expect(await end.endsWithin(1)).toBe(false);
    child.exits(0);
    expect(await end.endsWithin(60_000)).toBe(true);
  });

  test("a process that could not be started -> ended; there is nothing to signal or to close", async () => {
    const child = new FakeProcess();
    const sent: string[] = [];
    const end = new ProcessEnd(child as unknown as ServerProcess, {
      onExit: () => sent.push("exit"),
      onEnd: () => sent.push("over"),
      onNote: (note) => sent.push(note),
      kill: (_pid, signal) => {
        sent.push(signal);
        return "sent";
      },
    });
    child.emit("error", new Error("ENOENT"));
    await end.exited;
    await end.closeWithin(soon);
    expect(end.kill("SIGKILL")).toBe("gone");
    expect(sent).toEqual([]);
  });

  test.each<[number | null, NodeJS.Signals | null, string]>([
    [0, null, "exited with code 0"],
    [127, null, "exited with code 127"],
    [null, "SIGSEGV", "was ended by SIGSEGV"],
  ])("describeExit(%s, %s) -> %s", (code, signal, text) => {
    expect(describeExit(code, signal)).toBe(text);
  });
});
