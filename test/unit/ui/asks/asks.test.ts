/** Owns: a server's question as the user sees it: its dialogs in order, the review, and every way in which it ends. */
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import type { Ask, AskAnswer, AskUrl, Field, FieldKind } from "../../../../src/shared/protocol/calls.ts";
import { settled } from "../../settled.ts";
import { nothingTyped } from "../typed.ts";
import { type Asking, asking, field, form } from "./support.ts";

const NAME = field("Name", { kind: "text" }, { required: true });
const AGE = field("Age", { kind: "number", integer: true, minimum: 1, default: 42 });
const SURE = field("Sure", { kind: "boolean" });
const cats = [{ title: "Cat" }, { title: "Dog" }, { title: "Cat" }];
const PET = field("Pet", { kind: "choice", choices: cats, default: 1 });
const FISH = field("Fish", {
  kind: "choices",
  choices: [{ title: "Tuna" }, { title: "Trout" }],
  minItems: 1,
});
const PAGE: AskUrl = {
  kind: "url",
  message: "Sign in.",
  url: "https://example.com/a",
  host: "example.com",
  punycode: false,
  plain: false,
};
const titles = ({ dialogs }: Asking): string[] => dialogs.map(({ title }) => title);
const WITHDRAWN = ["files no longer waits for an answer.", "info"];

describe("a form", () => {
  test("one field of each kind -> a dialog each, the review, and the values as they were given", async () => {
    const at = asking({
      user: ["Answer", " Ann ", "", "(leave out)", "Cat (2)", "[ ] Trout", "Done", "Send"],
    });
    await at.ask(form(NAME, AGE, SURE, PET, FISH));
    expect(at.answers).toEqual([{ action: "accept", values: [" Ann ", "42", undefined, 2, [1]] }]);
    expect(titles(at)).toEqual([
      "MCP server files asks (5 questions):\n│ Tell me.",
      "files, 1 of 5:\n│ Name\nEscape: back",
      "files, 2 of 5:\n│ Age\n(a whole number, at least 1, optional)\nEnter: 42 · Escape: back",
      "files, 3 of 5:\n│ Sure\n(optional)\nEscape: back",
      "files, 4 of 5:\n│ Pet\n(optional)\nEscape: back",
      "files, 5 of 5:\n│ Fish\n(choose at least 1, optional)\nEscape: back",
      "files, 5 of 5:\n│ Fish\n(choose at least 1, optional)\nEscape: back",
      "Send this to MCP server files? Choose a line to change it.",
    ]);
    expect(at.dialogs.map(({ options }) => options)).toEqual([
      ["Answer", "Decline"],
      undefined,
      undefined,
      ["(leave out)", "No", "Yes"],
      ["Dog", "Cat", "Cat (2)", "(leave out)"],
      ["[ ] Tuna", "[ ] Trout", "Done"],
      ["[ ] Tuna", "[x] Trout", "Done"],
      ["Send", "Name: Ann", "Age: 42", "Sure: (left out)", "Pet: Cat", "Fish: Trout", "Decline"],
    ]);
  });

  test("a value that does not fit -> the field is asked again, with the reason", async () => {
    const at = asking({ user: ["Answer", "", "Ann", "abc", "0", "7", "Send"] });
    await at.ask(form(NAME, AGE));
    expect(titles(at).filter((title) => title.includes("!"))).toEqual([
      "files, 1 of 2:\n│ Name\nEscape: back\n! An answer is needed.",
      expect.stringMatching(/! "abc": A number is needed\.$/),
      expect.stringMatching(/! "0": At least 1 is needed\.$/),
    ]);
    expect(at.answers).toEqual([{ action: "accept", values: ["Ann", "7"] }]);
  });

  test("the review -> each field can be changed before anything is sent", async () => {
    const at = asking({ user: ["Answer", "Ann", "Name: Ann", "Bob", "Send"] });
    await at.ask(form(NAME));
    expect(at.answers).toEqual([{ action: "accept", values: ["Bob"] }]);
    expect(titles(at)[3]).toBe("files:\n│ Name\nEnter: Ann · Escape: leave it as it is");
  });

  test("Escape -> the question before, whose value stays; from the first one to where the form begins", async () => {
    const at = asking({ user: ["Answer", "Ann", null, null, "Answer", "", "7", "Send"] });
    await at.ask(form(NAME, AGE));
    expect(at.answers).toEqual([{ action: "accept", values: ["Ann", "7"] }]);
    expect(titles(at).map((title) => title.split("\n")[0])).toEqual([
      "MCP server files asks (2 questions):",
      "files, 1 of 2:",
      "files, 2 of 2:",
      "files, 1 of 2:",
      "MCP server files asks (2 questions):",
      "files, 1 of 2:",
      "files, 2 of 2:",
      "Send this to MCP server files? Choose a line to change it.",
    ]);
    expect(titles(at)[5]).toContain("Enter: Ann");
  });

  test.each<[string, Partial<Field>, string[], unknown]>([
    ["a yes or no", { required: true }, ["No", "Yes", "Decline"], [true]],
    ["one whose server proposes yes", { required: true, default: true }, ["Yes", "No", "Decline"], [true]],
    ["one that may be left out", {}, ["(leave out)", "No", "Yes", "Decline"], [true]],
  ])("%s alone -> one dialog, which sends the choice", async (_what, more, options, values) => {
    const at = asking({ user: ["Yes"] });
    await at.ask(form(field("Drop it", { kind: "boolean" }, more)));
    expect(at.dialogs).toHaveLength(1);
    expect(at.dialogs[0]?.options).toEqual(options);
    expect(titles(at)[0]).toMatch(
      /^MCP server files asks \(1 question\):\n│ Tell me\.\n│ Drop it\n(\(optional\)\n)?Your choice is sent at once$/,
    );
    expect(at.answers).toEqual([{ action: "accept", values }]);
    const declined = asking({ user: ["Decline"] });
    await declined.ask(form(field("Drop it", { kind: "boolean" }, more)));
    expect(declined.answers).toEqual([{ action: "decline" }]);
  });

  test("a choice that the server calls Decline -> told from ours, and sent", async () => {
    const at = asking({ user: ["Decline (2)"] });
    await at.ask(
      form(
        field(
          "Answer",
          { kind: "choice", choices: [{ title: "Accept" }, { title: "Decline" }] },
          { required: true },
        ),
      ),
    );
    expect(at.dialogs[0]?.options).toEqual(["Accept", "Decline (2)", "Decline"]);
    expect(at.answers).toEqual([{ action: "accept", values: [1] }]);
  });

  test("while one types into Pi's editor -> the first choice of what answers at once lets nothing happen", async () => {
    const first = async (ask: Ask, editorText: string): Promise<unknown> => {
      nothingTyped();
      const at = asking({ mode: "tui", editorText });
      await at.ask(ask);
      return at.dialogs[0]?.options?.[0];
    };
    const yesNo = form(field("Drop it", { kind: "boolean" }, { required: true, default: true }));
    for (const [ask, usual] of [
      [yesNo, "Yes"],
      [form(), "Continue"],
      [PAGE, "Open it in the browser"],
    ] as const) {
      expect([await first(ask, ""), await first(ask, "fix the")]).toEqual([usual, "Decline"]);
    }
  });

  test("without fields -> Continue or Decline", async () => {
    const at = asking({ user: ["Continue"] });
    await at.ask(form());
    expect(at.dialogs).toEqual([
      { method: "select", title: "MCP server files asks:\n│ Tell me.", options: ["Continue", "Decline"] },
    ]);
    expect(at.answers).toEqual([{ action: "accept", values: [] }]);
  });

  it.each<[string, unknown[], string]>([
    ["Decline at first", ["Decline"], "decline"],
    ["Decline in the review", ["Answer", "Ann", "Decline"], "decline"],
    ["Escape at first", [null], "cancel"],
    ["Escape at the first field, and before it", ["Answer", null, null], "cancel"],
    ["Escape in the review", ["Answer", "Ann", null], "cancel"],
    [
      "Escape while a field is changed, then in the review",
      ["Answer", "Ann", "Name: Ann", null, null],
      "cancel",
    ],
    ["over RPC a choice that was not given", ["Yes"], "cancel"],
    ["over RPC a number", ["Answer", 5, 5], "cancel"],
    ["over RPC an object", [{ value: "Answer" }], "cancel"],
  ])("%s -> no value is sent", async (_how, user, action) => {
    const at = asking({ user });
    await at.ask(form(NAME));
    expect(at.answers).toEqual([{ action }]);
    expect(at.notices).toEqual([]);
  });

  it.each<[string, FieldKind]>([
    ["a text", { kind: "text" }],
    ["a choice", { kind: "choice", choices: cats }],
    ["choices", { kind: "choices", choices: cats }],
  ])("over RPC a program that answers %s without an end -> cancelled", async (_what, kind) => {
    const isText = kind.kind === "text";
    const at = asking({
      select: (title, options) =>
        title.includes("asks") || title.includes("Send") ? options[0] : options[0],
      input: () => (isText ? "" : undefined),
    });
    await at.ask(form(field("F", kind, { required: true })));
    const last = (at.answers.at(-1) as AskAnswer | undefined)?.action;
    expect(kind.kind === "choice" ? last === "accept" : last === "cancel").toBe(true);
    expect(at.dialogs.length).toBeLessThan(300);
  });
});

test("choices with equal texts, or with ours -> each can be chosen", async () => {
  const same = ["x", "x", "x (2)", "(leave out)"].map((title) => ({ title }));
  const at = asking({ user: ["x (2) (2)"] });
  await at.ask(form(field("F", { kind: "choice", choices: same, default: 0 })));
  const left = ["(leave out)", "(leave out) (2)", "Decline"];
  expect(at.dialogs[0]?.options).toEqual(["x", "x (2)", "x (2) (2)", ...left]);
  expect(at.answers).toEqual([{ action: "accept", values: [2] }]);
});

describe("in a terminal, several of a list", () => {
  const MANY = field("Fish", {
    kind: "choices",
    choices: ["Tuna", "Trout", "Cod"].map((title) => ({ title })),
    maxItems: 2,
  });
  const [DOWN, ENTER, ESCAPE] = ["\u001b[B", "\r", "\u001b"];

  /** Opens the list of the only question. */
  async function opened() {
    const at = asking({ mode: "tui", user: ["Answer", "Send"] });
    await at.ask(form(MANY));
    const screen = (): string => (at.screens[0]?.render(60) ?? []).map((line) => line.trimEnd()).join("\n");
    const press = async (...keys: string[]): Promise<string> => {
      for (const key of keys) at.screens[0]?.handleInput(key);
      await settled();
      return screen();
    };
    return { at, screen, press };
  }

  test("the choice stays after a tick; too many are told, and the ticks stay", async () => {
    const { at, screen, press } = await opened();
    expect(screen()).toMatch(
      /^─+\n files:\n\n │ Fish\n \(choose at most 2, optional\)\n Escape: back\n\n → \[ \] Tuna/,
    );
    expect(await press(DOWN, ENTER)).toMatch(/ {3}\[ \] Tuna\n → \[x\] Trout\n {3}\[ \] Cod\n {3}Done/);
    expect(await press(DOWN, " ")).toMatch(/\[x\] Trout\n → \[x\] Cod/);
    await press("\u001b[A", "\u001b[A", " ");
    expect(await press(DOWN, DOWN, DOWN, ENTER)).toMatch(
      /\[x\] Tuna\n {3}\[x\] Trout\n {3}\[x\] Cod\n → Done\n\n Choose at most 2\./,
    );
    expect(screen()).toContain("tab done");
    await press("\u001b[A", ENTER, "\t");
    expect(at.screens).toEqual([]);
    expect(at.answers).toEqual([{ action: "accept", values: [[0, 1]] }]);
  });

  test("Escape goes back; a question that is withdrawn closes it", async () => {
    const { at, press } = await opened();
    await press(ESCAPE);
    expect([at.screens.length, at.dialogs.at(-1)?.options]).toEqual([0, ["Answer", "Decline"]]);
    const other = await opened();
    await other.at.withdraw();
    expect([other.at.screens.length, other.at.notices]).toEqual([0, [WITHDRAWN]]);
  });
});

describe("a page", () => {
  it.each<[unknown, object, number]>([
    ["Open it in the browser", { action: "accept", open: true }, 0],
    ["I open it myself", { action: "accept", open: false }, 1],
    ["Decline", { action: "decline" }, 0],
    [null, { action: "cancel" }, 0],
    ["anything", { action: "cancel" }, 0],
  ])("%j -> %j", async (choice, answer, notices) => {
    const at = asking({ user: [choice] });
    await at.ask(PAGE);
    expect(at.answers).toEqual([answer]);
    expect(at.notices).toHaveLength(notices);
    expect(titles(at)).toEqual([
      "MCP server files asks you to open a page:\n│ Sign in.\nHost: example.com\nhttps://example.com/a",
    ]);
  });

  test("an address that a terminal cannot be given -> declined without a dialog", async () => {
    const at = asking();
    await at.ask({ ...PAGE, url: "https://example.com/\u001b]8;;x" });
    expect([at.dialogs, at.answers]).toEqual([[], [{ action: "decline" }]]);
  });

  test("a look-alike and an unencrypted address -> both are said", async () => {
    const at = asking();
    await at.ask({
      ...PAGE,
      url: "http://xn--pple-43d.com/",
      host: "xn--pple-43d.com",
      punycode: true,
      plain: true,
    });
    expect(titles(at)[0]).toContain(
      "Host: xn--pple-43d.com\nThe name holds foreign letters, shown here in their code (xn--). " +
        "It may look like another name: check it.\nThe page is not encrypted (http).\nhttp://xn--pple-43d.com/",
    );
  });

  test.each([
    ["http on another machine", "http://other.example/a", "other.example", false],
    ["http on this machine", "http://localhost:8080/a", "localhost:8080", true],
    ["https", "https://other.example/a", "other.example", true],
  ])(
    "a page over %s -> a browser is offered only if one is started",
    async (_title, url, host, isOffered) => {
      const at = asking();
      await at.ask({ ...PAGE, url, host, plain: url.startsWith("http:") });
      const options = JSON.stringify(at.dialogs[0]);
      expect(options.includes("Open it in the browser")).toBe(isOffered);
      expect(options).toContain("I open it myself");
    },
  );

  test.each([
    ["I am done there", { action: "accept", open: false }, 0],
    ["Open it in the browser", { action: "accept", open: true }, 0],
  ])(
    "a page that the user has agreed to before -> that comes first; %j -> %j",
    async (choice, answer, notices) => {
      const at = asking({ user: [choice] });
      await at.ask({ ...PAGE, again: true });
      expect(at.dialogs[0]).toMatchObject({
        title: expect.stringMatching(/^MCP server files still waits for this page:\n│ Sign in\./),
        options: ["I am done there", "Open it in the browser", "I open it myself", "Decline"],
      });
      expect(at.answers).toEqual([answer]);
      expect(at.notices).toHaveLength(notices);
    },
  );

  test("in a terminal -> the address is a link; one of many rows is a notice of its own", async () => {
    const at = asking({ mode: "tui" });
    await at.ask(PAGE);
    expect(titles(at)[0]).toContain(
      "\u001b]8;;https://example.com/a\u001b\\https://example.com/a\u001b]8;;\u001b\\",
    );
    const long = asking({ mode: "tui" });
    const url = `https://example.com/${"x".repeat(4_000)}`;
    await long.ask({ ...PAGE, url });
    expect(long.notices[0]?.[0]).toContain(url);
    expect(titles(long)[0]).toMatch(/Host: example\.com\nThe whole address is above\.$/);
  });
});

describe("a question that is over", () => {
  test("while its dialog is open -> the dialog closes, one line says so, and nothing is sent", async () => {
    for (const user of [[], ["Answer"], ["Answer", "Ann"]]) {
      const at = asking({ user });
      await at.ask(form(NAME));
      await at.withdraw("1");
      expect([at.answers, at.notices]).toEqual([[], [WITHDRAWN]]);
    }
  });

  test("before its turn -> it is never shown; the next one is", async () => {
    const at = asking();
    await at.ask(PAGE, "1");
    await at.ask(form(NAME), "2");
    await at.ask(form(AGE), "3");
    expect(at.dialogs).toHaveLength(1);
    await at.withdraw("2");
    await at.withdraw("1");
    expect(at.dialogs).toHaveLength(2);
    expect(at.answers).toEqual([]);
  });

  /** A question that was taken back while its answer was typed. */
  const takenBack = async (mode: "tui" | "rpc" = "tui", others = 0): Promise<Asking> => {
    nothingTyped();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => {
      vi.useRealTimers();
      nothingTyped();
    });
    const at = asking({ mode, user: ["Answer"] });
    await at.ask(form(NAME));
    expect(at.dialogs).toHaveLength(2);
    for (let other = 0; other < others; other++) await at.ask(form(NAME), `other ${other}`);
    expect(at.isTaken("A")).toBe(false);
    await at.withdraw();
    return at;
  };

  test("while its answer is typed -> the rest and the Enter are nobody's, until a pause", async () => {
    const at = await takenBack();
    for (const key of ["n", "n", "\r"]) {
      expect(at.isTaken(key)).toBe(true);
      vi.advanceTimersByTime(599);
    }
    vi.advanceTimersByTime(1);
    expect(["h", "i", "\r"].map(at.isTaken)).toEqual([false, false, false]);
  });

  test.each(["\u001b", "\u0003", "\u001b[27u", "\u001b[99;5u", "\u001b[27;5;99~"])(
    "while its answer is typed -> the key %j still counts",
    async (key) => {
      const at = await takenBack();
      expect([at.isTaken(key), at.isTaken("n")]).toEqual([false, true]);
    },
  );

  test.each([
    ["Pi has it again", 0, false],
    ["the next question still waits for a pause", 1, true],
  ])("a key is held down for more than five seconds -> %s", async (_title, others, isTaken) => {
    const at = await takenBack("tui", others);
    const held = Array.from({ length: 51 }, () => {
      vi.advanceTimersByTime(100);
      return at.isTaken("x");
    });
    expect([new Set(held.slice(0, 50)), held.at(-1)]).toEqual([new Set([true]), isTaken]);
  });

  test("behind an answer, one choice and an address -> they take no key of that answer", async () => {
    for (const ask of [form(field("Drop it", { kind: "boolean" })), PAGE]) {
      nothingTyped();
      const clock = vi.spyOn(performance, "now").mockReturnValue(1_000);
      onTestFinished(() => {
        clock.mockRestore();
        nothingTyped();
      });
      const at = asking({ mode: "tui", user: ["Answer", "Ann", "Send"] });
      await at.ask(form(NAME), "1");
      await at.ask(ask, "2");
      expect([at.answers.length, at.dialogs.length, at.isTaken("\r")]).toEqual([1, 4, true]);
      clock.mockReturnValue(1_600);
      expect(at.isTaken("\r")).toBe(false);
    }
  });

  test("over RPC -> no key is kept", async () => {
    expect((await takenBack("rpc")).isTaken("n")).toBe(false);
  });

  test("the session ends -> every dialog closes, and Pi is not touched", async () => {
    const at = asking();
    await at.ask(form(NAME), "1");
    await at.ask(PAGE, "2");
    at.stop();
    await settled();
    expect([at.dialogs.length, at.notices, at.answers, at.errors]).toEqual([1, [], [], []]);
  });
});
