/** Owns: which addresses are shown as a link, and the texts of a sign-in at any width. */
import { describe, expect, it, test } from "vitest";
import { openableUrl } from "../../../../src/report/server-name.ts";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { terminalLink } from "../../../../src/ui/dialog.ts";
import {
  dialogText,
  endText,
  failureText,
  fitsDialog,
  noticeText,
  questionText,
} from "../../../../src/ui/sign-in/words.ts";
import { OPEN, URL_OF_PAGE } from "./support.ts";

const LONG = `${URL_OF_PAGE}&code_challenge=${"x".repeat(8_000)}`;

describe("openableUrl", () => {
  it.each<[string, string, boolean]>([
    ["https", URL_OF_PAGE, true],
    ["http", "http://127.0.0.1:3000/authorize", true],
    ["capital letters", "HTTPS://Auth.example.com/", true],
    ["an address of 8 KB", `https://a.test/${"x".repeat(8 * 1024 - 15)}`, true],
    ["a longer one", `https://a.test/${"x".repeat(8 * 1024 - 14)}`, false],
    ["another scheme", "javascript:alert(1)", false],
    ["a file", "file:///etc/passwd", false],
    ["an escape sequence", "https://a.test/\u001b]8;;https://evil.test\u001b\\", false],
    ["a C1 control", "https://a.test/\u009b2J", false],
    ["a line end", "https://a.test/\nhttps://b.test", false],
    ["a space", "https://a.test/a b", false],
    ["letters that turn the line around", "https://a.test/\u202egpj.exe", false],
    ["no host", "https://", false],
    ["a host that is none", "https://[::1", false],
    ["nothing", "", false],
  ])("%s -> openable: $2", (_name, url, isOpenable) => {
    expect(openableUrl(url)).toBe(isOpenable ? url : undefined);
  });
});

describe("the dialog", () => {
  it.each([60, 80, 120])(
    "%i columns -> a link in one line, and the whole address, which is a link itself",
    (columns) => {
      const text = dialogText("linear", OPEN, URL_OF_PAGE, { columns, rows: 50 });
      expect(text.split("\n").slice(0, 3)).toEqual([
        "Sign in to linear in the browser. If it has not opened, open this page:",
        terminalLink(URL_OF_PAGE, "Open the sign-in page"),
        terminalLink(URL_OF_PAGE, URL_OF_PAGE),
      ]);
    },
  );

  it.each([undefined, { columns: 80, rows: 24 }, { columns: 20, rows: 10 }])(
    "who gets the code -> named in each dialog, in one line: %j",
    (screen) => {
      const step = { ...OPEN, codeGoesTo: "as.example:8443\n\u001b[2Jevil" };
      for (const listens of [true, false])
        expect(dialogText("linear", { ...step, listens }, URL_OF_PAGE, screen).split("\n")).toContain(
          "The code of this sign-in goes to as.example:8443 evil.",
        );
    },
  );

  it.each<[string, string, { columns: number; rows: number } | undefined, boolean]>([
    ["a short address, the smallest terminal", URL_OF_PAGE, { columns: 60, rows: 24 }, true],
    ["as many rows as there are", "x".repeat(58 * 6), { columns: 60, rows: 24 }, true],
    ["one row more", "x".repeat(58 * 6 + 1), { columns: 60, rows: 24 }, false],
    ["the longest address", LONG, { columns: 120, rows: 50 }, false],
    ["a terminal of no size", URL_OF_PAGE, { columns: 0, rows: 0 }, false],
    ["over RPC, where another program draws", LONG, undefined, true],
  ])("%s -> it fits: $3", (_name, url, screen, fits) => {
    expect(fitsDialog(url, screen)).toBe(fits);
  });

  test("an address that does not fit -> the dialog has the link alone, and the notice the whole address", () => {
    const screen = { columns: 60, rows: 24 };
    const text = dialogText("linear", OPEN, LONG, screen);
    expect(text).toContain(terminalLink(LONG, "Open the sign-in page (its address is above)"));
    expect(text.split(LONG)).toHaveLength(2);
    expect(noticeText("linear", LONG, screen)).toBe(
      `The sign-in page of linear:\n${terminalLink(LONG, LONG)}`,
    );
  });

  test("over RPC -> plain text, with no escape sequence", () => {
    for (const text of [dialogText("linear", OPEN, LONG, undefined), noticeText("linear", LONG, undefined)]) {
      expect(text).toContain(`\n${LONG}`);
      expect(text).not.toContain("\u001b");
    }
  });

  it.each([
    [
      "started",
      true,
      /^Sign in to linear in the browser\./,
      /If the browser ends on a page that it cannot show/,
    ],
    [
      "none",
      true,
      /^To sign in to linear, open this page/,
      /If the browser ends on a page that it cannot show/,
    ],
    ["none", false, /^To sign in to linear, open this page/, /Then paste here the address/],
  ] as const)("browser %s, a listener: %s -> says what to do", (browser, listens, first, last) => {
    const text = dialogText("linear", { ...OPEN, browser, listens }, URL_OF_PAGE, undefined);
    expect(text).toMatch(first);
    expect(text.split("\n").at(-1)).toMatch(last);
  });

  test("a server's name that acts on a terminal -> cleaned, in one line", () => {
    const text = dialogText("a\n\u001b[2Jb", OPEN, URL_OF_PAGE, undefined);
    expect(text.split("\n")[0]).toBe("Sign in to a b in the browser. If it has not opened, open this page:");
  });
});

test("a question -> its server in the title; its text in one line, bounded", () => {
  expect(questionText("linear", { about: "pi", text: "Pi has\none\u001b[2J." })).toEqual([
    "Take over Pi's sign-in to linear?",
    "Pi has one.",
  ]);
  const [title, text] = questionText("linear", { about: "issuer", issuer: "x", text: "y".repeat(10_000) });
  expect(title).toBe("Sign in to linear with this authorization server?");
  expect(text.length).toBe(2_000);
});

describe("the end", () => {
  it.each([
    [23, "linear: signed in, 23 tools.", "info"],
    [1, "linear: signed in, 1 tool.", "info"],
    [undefined, "linear: signed in, but the server did not connect. /mcp says why.", "warning"],
  ])("%s tools -> %s", (tools, text, level) => {
    expect(endText("linear", { ok: true, ...(tools === undefined ? {} : { tools }) })).toEqual([text, level]);
  });

  it.each<[string, unknown, string]>([
    [
      "the worker's sentence",
      new ThreadsError("needs_auth", "linear: the sign-in was not finished in time.", { remedy: "Again." }),
      "linear: the sign-in was not finished in time. Again.",
    ],
    ["a sentence without the name", new ThreadsError("internal", "no disk"), "linear: no disk"],
    ["a foreign error", new TypeError("x is not a function"), "linear: x is not a function"],
    ["anything that is thrown", "text", "linear: text"],
    ["nothing", undefined, "linear: undefined"],
    [
      "the end of the worker",
      new ThreadsError("runtime_restarted", "ended with code 7", { remedy: "The call may have run." }),
      "linear: the sign-in was cut off, because the connection worker ended. /mcp auth linear begins it again.",
    ],
    ["words that act on a terminal", new ThreadsError("needs_auth", "linear: a\u001b[2J\nb"), "linear: a b"],
  ])("%s -> one line with the server's name", (_name, failure, text) => {
    expect(failureText("linear", failure)).toBe(text);
  });

  test("the longest words of a server -> cut", () => {
    const error = { code: "needs_auth" as const, message: "x ".repeat(10_000), remedy: "y ".repeat(10_000) };
    const [text, level] = endText("linear", { ok: false, error });
    expect([text.length < 1_300, level]).toEqual([true, "error"]);
  });

  test("cancelled -> no error", () => {
    const error = { code: "cancelled" as const, message: "linear: the sign-in was cancelled." };
    expect(endText("linear", { ok: false, error })).toEqual(["linear: the sign-in was cancelled.", "info"]);
  });
});
