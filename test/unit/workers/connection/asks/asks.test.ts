/** Owns: which questions of servers are open, wait or are declined unseen, and how each of them ends. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { AskAnswer } from "../../../../../src/shared/protocol/calls.ts";
import type { WorkerEvent } from "../../../../../src/shared/protocol/contract.ts";
import {
  type ElicitAnswer,
  type ServerAsks,
  SessionAsks,
} from "../../../../../workers/connection/asks/asks.ts";
import { ASK_MS, DECLINES } from "../../../../../workers/connection/asks/limits.ts";
import { recordingUser } from "../../../../support/recording-user.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const NAME = {
  message: "Who?",
  requestedSchema: { properties: { name: { type: "string" } }, required: ["name"] },
};
const PAGE = { mode: "url", message: "Sign in.", url: "https://example.com/a" };
const DECLINE: AskAnswer = { action: "decline" };
const never = new AbortController().signal;

function session(browser: "started" | "none" = "started", sideBySide = false) {
  const events: WorkerEvent[] = [];
  const notes: string[] = [];
  const opened: string[] = [];
  const user = recordingUser();
  const isAnswered = new Set<number>();
  const asks = new SessionAsks({
    askUser: user.ask,
    sideBySide,
    emit: (event) => events.push(event),
    openPage: async (url) => {
      opened.push(url);
      return browser;
    },
  });
  const of = (name: string, may = { ask: true, sample: false }): ServerAsks => {
    const server = asks.of({
      name,
      redact: (text) => text,
      onNote: (note) => notes.push(`${name} ${note}`),
      may,
    });
    if (!server) throw new Error("the server may ask nobody");
    return server;
  };
  return {
    of,
    turnEnded: () => asks.turnEnded(),
    /** Answers the question with this number, from 1. */
    answer: async (number: number, answer: AskAnswer | undefined) => {
      isAnswered.add(number - 1);
      user.asked[number - 1]?.answer(answer);
      await turn();
    },
    questions: () => user.ofServers().map(({ question }) => question),
    server: of("s"),
    events,
    notes,
    opened,
    /** How many questions were shown. */
    shown: () => user.asked.length,
    /** Numbers of the questions that were taken away without an answer. */
    over: () =>
      user.asked.flatMap(({ signal }, index) =>
        signal.aborted && !isAnswered.has(index) ? [index + 1] : [],
      ),
    /** The answers that have arrived, in order. */
    follow: (...questions: Promise<ElicitAnswer>[]) => {
      const answers: string[] = [];
      for (const [index, one] of questions.entries())
        void one.then(({ action }) => answers.push(`${index} ${action}`));
      return answers;
    },
  };
}

const turn = () => vi.advanceTimersByTimeAsync(0);

describe("a question", () => {
  test("it is shown, and the answer reaches the server", async () => {
    const at = session();
    const answer = at.server.create(NAME, never);
    expect(at.questions()).toEqual([
      {
        about: "server",
        server: "s",
        ask: {
          kind: "form",
          message: "Who?",
          fields: [{ kind: "text", title: "name", required: true }],
          keys: [{ name: "name", values: [] }],
        },
      },
    ]);
    await at.answer(1, { action: "accept", values: ["Ann"] });
    expect(await answer).toEqual({ action: "accept", content: { name: "Ann" } });
    expect(at.over()).toEqual([]);
  });

  test.each([
    ["a value that does not fit", { action: "accept", values: [undefined] }],
    ["no answer", undefined],
  ] as const)("%s -> cancelled", async (_what, given) => {
    const at = session();
    const answer = at.server.create(NAME, never);
    await at.answer(1, given as AskAnswer | undefined);
    expect(await answer).toEqual({ action: "cancel" });
  });

  test.each(["decline", "cancel"] as const)("%s -> no content", async (action) => {
    const at = session();
    const answer = at.server.create(NAME, never);
    await at.answer(1, { action });
    expect(await answer).toEqual({ action });
  });

  test.each([
    [true, "started", ["https://example.com/a"], []],
    [true, "none", ["https://example.com/a"], [{ type: "unopened", server: "s", url: PAGE.url }]],
    [false, "none", [], []],
  ] as const)(
    "an address, open: %j, browser: %s -> %j are opened, events %j",
    async (open, browser, opened, events) => {
      const at = session(browser);
      const answer = at.server.create(PAGE, never);
      expect(at.opened).toEqual([]);
      await at.answer(1, { action: "accept", open });
      expect(await answer).toEqual({ action: "accept" });
      expect([at.opened, at.events]).toEqual([opened, events]);
    },
  );

  test("an address that is declined -> it is not opened", async () => {
    const at = session();
    const answer = at.server.create(PAGE, never);
    await at.answer(1, DECLINE);
    expect([await answer, at.opened]).toEqual([{ action: "decline" }, []]);
  });

  test("it cannot be asked -> declined unseen, and the log says why", async () => {
    const at = session();
    const form = { requestedSchema: { properties: { a: { type: "object" } } } };
    expect(await at.server.create(form, never)).toEqual({ action: "decline" });
    expect(at.shown()).toBe(0);
    expect(at.notes).toEqual([
      "s asks the user something that is declined unseen: its field a is of a kind that forms do not have",
    ]);
  });

  test("the server no longer waits, before or after it is shown -> it is cancelled and hidden", async () => {
    const at = session();
    const gone = new AbortController();
    const answers = at.follow(at.server.create(NAME, gone.signal), at.server.create(PAGE, gone.signal));
    gone.abort();
    await turn();
    expect(answers).toEqual(["0 cancel", "1 cancel"]);
    expect([at.shown(), at.over()]).toEqual([1, [1]]);
    expect(await at.server.create(NAME, gone.signal)).toEqual({ action: "cancel" });
    expect(at.shown()).toBe(1);
  });
});

describe("several questions", () => {
  test("of one server -> one is open, four wait, and the sixth is cancelled", async () => {
    const at = session();
    const all = Array.from({ length: 6 }, () => at.server.create(NAME, never));
    const answers = at.follow(...all);
    await turn();
    expect(answers).toEqual(["5 cancel"]);
    expect(at.notes).toEqual(["s asks the user more than 5 things at a time; the others are cancelled"]);
    expect(at.shown()).toBe(1);
    await at.answer(1, { action: "accept", values: ["Ann"] });
    await turn();
    expect(at.shown()).toBe(2);
  });

  test("of two servers -> each has its own", () => {
    const at = session();
    void at.server.create(NAME, never);
    void at.of("other").create(NAME, never);
    expect(at.shown()).toBe(2);
  });

  test("a waiting one that is withdrawn -> it is never shown", async () => {
    const at = session();
    const gone = new AbortController();
    void at.server.create(NAME, never);
    const answers = at.follow(at.server.create(PAGE, gone.signal));
    void at.server.create(NAME, never);
    gone.abort();
    await turn();
    expect(answers).toEqual(["0 cancel"]);
    await at.answer(1, { action: "cancel" });
    expect(at.questions()).toMatchObject([{ ask: { kind: "form" } }, { ask: { kind: "form" } }]);
  });
});

describe("a server that nags", () => {
  test("three declines in a turn -> declined unseen, over connections, until the turn ends", async () => {
    const at = session();
    for (let id = 1; id <= DECLINES; id++) {
      void at.server.create(NAME, never);
      await at.answer(id, id === 2 ? { action: "cancel" } : DECLINE);
    }
    expect(await at.server.create(NAME, never)).toEqual({ action: "decline" });
    expect(await at.of("s").create(PAGE, never)).toEqual({ action: "decline" });
    expect(at.shown()).toBe(DECLINES);
    expect(at.notes).toEqual(["s asks the user again and again, and is declined unseen until the turn ends"]);
    at.turnEnded();
    void at.server.create(NAME, never);
    expect(at.shown()).toBe(DECLINES + 1);
  });

  test.each([
    ["several clients -> it may ask again, as in a new turn", true],
    ["one session of Pi -> declined unseen until the turn ends", false],
  ])("its last open call ends, %s", async (_what, sideBySide) => {
    const at = session("started", sideBySide);
    const [first, second] = [at.server.callBegins(), at.of("s").callBegins()];
    for (let id = 1; id <= DECLINES; id++) {
      void at.server.create(NAME, never);
      await at.answer(id, DECLINE);
    }
    first("done");
    expect(await at.server.create(NAME, never)).toEqual({ action: "decline" });
    expect(at.shown()).toBe(DECLINES);
    second("done");
    void at.server.create(NAME, never);
    expect(at.shown()).toBe(DECLINES + (sideBySide ? 1 : 0));
  });

  test("questions that nobody could be shown -> declined, and the next one is asked all the same", async () => {
    const at = session();
    for (let id = 1; id <= DECLINES; id++) {
      const answer = at.server.create(NAME, never);
      await at.answer(id, { action: "decline", unseen: true });
      expect(await answer).toEqual({ action: "decline" });
    }
    void at.server.create(NAME, never);
    expect(at.shown()).toBe(DECLINES + 1);
  });

  test("questions that wait behind the third decline -> declined unseen", async () => {
    const at = session();
    const answers = at.follow(...Array.from({ length: 5 }, () => at.server.create(NAME, never)));
    for (const id of [1, 2, 3]) await at.answer(id, DECLINE);
    await turn();
    expect(answers).toEqual(["0 decline", "1 decline", "2 decline", "3 decline", "4 decline"]);
    expect(at.shown()).toBe(3);
    expect(at.server.isOpen).toBe(false);
  });

  test("nobody answers for ten minutes -> all of its questions are cancelled, and none is shown in this turn", async () => {
    const at = session();
    const answers = at.follow(at.server.create(NAME, never), at.server.create(NAME, never));
    await vi.advanceTimersByTimeAsync(ASK_MS - 1);
    expect(answers).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(answers.toSorted()).toEqual(["0 cancel", "1 cancel"]);
    expect([at.shown(), at.over()]).toEqual([1, [1]]);
    expect(await at.server.create(NAME, never)).toEqual({ action: "decline" });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("the calls of the server", () => {
  test("the call that was open is given up -> its question is cancelled and hidden", async () => {
    const at = session();
    const end = at.server.callBegins();
    const answers = at.follow(at.server.create(NAME, never), at.server.create(NAME, never));
    end("given-up");
    await turn();
    expect(answers).toEqual(["0 cancel", "1 cancel"]);
    expect([at.shown(), at.over()]).toEqual([1, [1]]);
    expect(at.server.isOpen).toBe(false);
  });

  test("the call is answered -> the question stays", async () => {
    const at = session();
    const end = at.server.callBegins();
    const answers = at.follow(at.server.create(NAME, never));
    end("done");
    await turn();
    expect([answers, at.over()]).toEqual([[], []]);
  });

  test("one of two calls is given up -> the question stays until the other one has ended", async () => {
    const at = session();
    const [first, second] = [at.server.callBegins(), at.server.callBegins()];
    const answers = at.follow(at.server.create(NAME, never));
    const later = at.server.callBegins();
    first("given-up");
    await turn();
    expect(answers).toEqual([]);
    second("done");
    await turn();
    expect(answers).toEqual(["0 cancel"]);
    later("done");
  });

  test("watchers learn when a question opens and when the last one has ended", async () => {
    const at = session();
    const seen: boolean[] = [];
    const stop = at.server.watch(() => seen.push(at.server.isOpen));
    void at.server.create(NAME, never);
    void at.server.create(NAME, never);
    await at.answer(1, DECLINE);
    await at.answer(2, DECLINE);
    expect([seen[0], seen.at(-1), seen.slice(0, -1).every(Boolean)]).toEqual([true, false, true]);
    stop();
    const { length } = seen;
    void at.server.create(NAME, never);
    expect(seen).toHaveLength(length);
  });
});

describe("a call that needs the user to open pages (-32042)", () => {
  const items = (count: number): unknown => ({
    elicitations: Array.from({ length: count }, (_, index) => ({
      ...PAGE,
      url: `https://example.com/${index}`,
    })),
  });

  test.each([undefined, {}, { elicitations: "x" }, { elicitations: [5, { ...NAME, mode: "form" }] }])(
    "%j -> nothing is asked",
    async (data) => {
      const at = session();
      expect(await at.server.required(data, never)).toBe("none");
      expect(at.shown()).toBe(0);
    },
  );

  test("ten pages -> three are asked, one after the other", async () => {
    const at = session();
    const outcome = at.server.required(items(10), never);
    for (const id of [1, 2, 3]) {
      await at.answer(id, { action: "accept", open: true });
      await turn();
    }
    expect(await outcome).toBe("accept");
    expect(at.opened).toEqual(["https://example.com/0", "https://example.com/1", "https://example.com/2"]);
  });

  test("the first one is declined -> the others are not asked", async () => {
    const at = session();
    const outcome = at.server.required(items(2), never);
    await at.answer(1, DECLINE);
    expect([await outcome, at.shown()]).toEqual(["decline", 1]);
  });

  test("an address that cannot be opened -> declined", async () => {
    const at = session();
    expect(await at.server.required({ elicitations: [{ ...PAGE, url: "file:///x" }] }, never)).toBe(
      "decline",
    );
  });
});
