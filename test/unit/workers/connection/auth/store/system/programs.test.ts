/**
 * Owns: what the program of each system is asked and what its answers mean. The programs of macOS and Windows are models here,
 * made from Apple's sources and Microsoft's reference: nothing of these tests has run on these systems.
 */
import { describe, expect, test } from "vitest";
import {
  type Answer,
  type Dialect,
  dialectOf,
  type Ended,
  LOCKED,
  type Question,
  type Run,
} from "../../../../../../../workers/connection/auth/store/system/programs.ts";

const ITEM = "0123456789abcdef0123456789abcdef";
const LABEL = "pi-mcp-threads: linear";

const dialect = (platform: NodeJS.Platform): Dialect => {
  const found = dialectOf(platform, { SystemRoot: "C:\\Windows" });
  if (!found) throw new Error(`no store of ${platform}`);
  return found;
};

const ended = (over: Partial<Ended>): Ended => ({ code: 0, stdout: "", stderr: "", ...over });

const READ: Question = { do: "read", item: ITEM };
const WRITE: Question = { do: "write", item: ITEM, label: LABEL, text: "c2VjcmV0" };
const REMOVE: Question = { do: "remove", item: ITEM };

/** Random texts of base64url, the same in each run. */
function texts(chars: number): string[] {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  let seed = 1;
  const next = (): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed;
  };
  const of = (length: number): string =>
    Array.from({ length }, () => alphabet[next() % alphabet.length]).join("");
  return [1, 2, 63, chars - 1, chars, ...Array.from({ length: 40 }, () => 1 + (next() % chars))].map(of);
}

/** A program that keeps what it is told: one run of it. */
type Model = (run: Run) => Ended;

/** `secret-tool` of libsecret 0.20, tool/secret-tool.c: 8,192 bytes of stdin at most. */
function secretTool(): Model {
  const items = new Map<string, string>();
  return ({ args: [word = "", ...args], stdin }) => {
    const key = args.slice(-4).join(" ");
    if (word === "store") {
      items.set(key, stdin.slice(0, 8_192));
      return ended({ stderr: stdin.length > 8_191 ? "secret-tool: password is too long\n" : "" });
    }
    if (word === "clear") return ended({ code: items.delete(key) ? 0 : 1 });
    const found = items.get(key);
    return ended({
      stdout: found === undefined ? "" : `[/1]\nlabel = ${LABEL}\nsecret = ${found}\ncreated = 2026\n`,
    });
  };
}

/** `security` of macOS, SecurityTool/security.c and readline.c: lines of 4,095 bytes, words in quotes, the last code. */
function security(): Model {
  const items = new Map<string, string>();
  const words = (line: string): string[] =>
    [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain = ""]) => quoted ?? plain);
  const one = ([word = "", ...args]: readonly string[]): Ended => {
    const after = (flag: string): string => args[args.indexOf(flag) + 1] ?? "";
    const key = `${after("-s")} ${after("-a")}`;
    if (word === "add-generic-password") {
      items.set(key, after("-w"));
      return ended({});
    }
    const found = items.get(key);
    if (found === undefined) return ended({ code: 44, stderr: "could not be found in the keychain" });
    if (word === "delete-generic-password") items.delete(key);
    return ended({ stdout: word === "find-generic-password" ? `${found}\n` : "" });
  };
  return ({ args, stdin }) => {
    if (args[0] !== "-i") return one(args);
    const lines = stdin.split("\n").flatMap((line) => line.match(/.{1,4095}/g) ?? []);
    return lines.reduce<Ended>((_, line) => one(words(line)), ended({}));
  };
}

/** The script that PowerShell runs: its protocol, and the bound of wincred.h. */
function credentialManager(): Model {
  const items = new Map<string, string>();
  return ({ stdin }) => {
    const [asked, item = "", label = "", text = ""] = stdin.split("\n");
    if (asked === "write") {
      if (text.length > 2_560 || label === "") return ended({ stdout: "error 1783\r\n" });
      items.set(item, text);
      return ended({ stdout: "done\r\n" });
    }
    const found = items.get(item);
    if (found === undefined) return ended({ stdout: "error 1168\r\n" });
    if (asked === "read") return ended({ stdout: `text ${found}\r\n` });
    items.delete(item);
    return ended({ stdout: "done\r\n" });
  };
}

const SYSTEMS: readonly (readonly [NodeJS.Platform, () => Model])[] = [
  ["linux", secretTool],
  ["darwin", security],
  ["win32", credentialManager],
];

describe.each(SYSTEMS)("%s", (platform, makeModel) => {
  const { chars, run, answer } = dialect(platform);
  const model = makeModel();
  const ask = (question: Question): Answer => answer(question, model(run(question)));

  test("texts up to the longest -> read as written, replaced, removed", () => {
    expect(ask(READ)).toEqual({ kind: "missing" });
    for (const text of texts(chars)) {
      expect(ask({ ...WRITE, text })).toEqual({ kind: "done" });
      expect(ask(READ)).toEqual({ kind: "text", text });
    }
    expect(ask({ ...READ, item: `${ITEM}.1` })).toEqual({ kind: "missing" });
    expect(ask(REMOVE)).toEqual({ kind: "done" });
    expect(ask(READ)).toEqual({ kind: "missing" });
    expect(["missing", "unsure"]).toContain(ask(REMOVE).kind);
  });

  test("no text is in an argument, and each argument is the same for every text", () => {
    for (const text of texts(chars).filter(({ length }) => length > 8)) {
      const { args, stdin } = run({ ...WRITE, text });
      expect(args.join(" ")).not.toContain(text);
      expect(args).toEqual(run(WRITE).args);
      expect(stdin).toContain(text);
    }
  });

  test("the program is named by its whole path, or looked for where the system has it", () => {
    const { program } = dialect(platform);
    expect(program).toBe(
      {
        linux: "secret-tool",
        darwin: "/usr/bin/security",
        win32: "C:\\Windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe",
      }[platform as "linux"],
    );
  });
});

const failed = (what: string): Answer => ({ kind: "failed", what });
const NO_BUS = failed("this session has no D-Bus, as over SSH or in a container");
const NO_SERVICE = failed(
  "no program offers the Secret Service here, such as gnome-keyring, KWallet or KeePassXC",
);

describe("what secret-tool says", () => {
  const { answer } = dialect("linux");
  test.each<[stderr: string, code: number, question: Question, expected: Answer]>([
    ["secret-tool: Cannot autolaunch D-Bus without X11 $DISPLAY", 1, READ, NO_BUS],
    ["secret-tool: Could not connect: No such file or directory", 1, WRITE, NO_BUS],
    [
      "secret-tool: The name org.freedesktop.secrets was not provided by any .service files",
      1,
      READ,
      NO_SERVICE,
    ],
    ["secret-tool: Cannot create an item in a locked collection", 1, WRITE, failed(LOCKED)],
    ["secret-tool: Cannot get secret of a locked object", 1, REMOVE, failed(LOCKED)],
    [
      "secret-tool: Object does not exist at path “/org/freedesktop/secrets/collection/login”",
      1,
      WRITE,
      failed("it has no keyring to write to, or the keyring was not unlocked"),
    ],
    ["secret-tool: a secret c2VjcmV0", 1, WRITE, failed("secret-tool ended with code 1")],
    ["", 3, REMOVE, failed("secret-tool ended with code 3")],
    ["", 1, REMOVE, { kind: "unsure" }],
  ])("%s (%i)", (stderr, code, question, expected) => {
    expect(answer(question, ended({ code, stderr }))).toEqual(expected);
  });

  test("a locked item -> locked, not missing, also where the program says nothing of it", () => {
    const stdout = "[/1]\nlabel = a\ncreated = 2026\n";
    expect(
      answer(READ, ended({ stdout, stderr: "secret-tool: Cannot get secret of a locked object" })),
    ).toEqual(failed(LOCKED));
    expect(answer(READ, ended({ stdout }))).toEqual(failed(LOCKED));
  });

  test("a signal -> said", () => {
    const { code: _, ...killed } = ended({});
    expect(answer(WRITE, { ...killed, code: undefined })).toEqual(
      failed("secret-tool was ended by a signal"),
    );
  });
});

describe("what security says", () => {
  const { answer } = dialect("darwin");
  test.each<[code: number, question: Question, expected: Answer]>([
    [44, READ, { kind: "missing" }],
    [44, REMOVE, { kind: "missing" }],
    [44, WRITE, failed("security ended with code 44")],
    [36, READ, failed(LOCKED)],
    [51, READ, failed("the access to it was denied")],
    [128, READ, failed("the access to it was denied")],
    [37, WRITE, failed("there is no keychain")],
    [1, WRITE, failed("security ended with code 1")],
  ])("code %i", (code, question, expected) => {
    expect(answer(question, ended({ code, stderr: 'unknown command "c2VjcmV0"' }))).toEqual(expected);
  });

  test("the longest line of a write is within the 4,095 bytes that security reads of one", () => {
    const { run, chars } = dialect("darwin");
    const label = `pi-mcp-threads: ${"x".repeat(64)}`;
    const { stdin } = run({ ...WRITE, item: `${ITEM}.34`, label, text: "x".repeat(chars) });
    expect(stdin.match(/\n/g)).toHaveLength(1);
    expect(Buffer.byteLength(stdin)).toBeLessThanOrEqual(4_095);
  });
});

describe("what the script for PowerShell says", () => {
  const { answer, run } = dialect("win32");
  test.each<[stdout: string, question: Question, expected: Answer]>([
    ["error 1168\r\n", READ, { kind: "missing" }],
    ["error 1168\r\n", REMOVE, { kind: "missing" }],
    ["error 1168\r\n", WRITE, failed("Windows answers error 1168")],
    ["error 5\r\n", WRITE, failed("the access to it was denied")],
    ["error 1312\r\n", READ, failed("this logon has no Credential Manager, as over SSH")],
    ["language\r\n", READ, failed("the rules of this machine keep PowerShell from calling it")],
    ["done\r\n", READ, failed("PowerShell ended with code 0")],
    ["text c2VjcmV0\r\n", WRITE, failed("PowerShell ended with code 0")],
    ["", WRITE, failed("PowerShell ended with code 0")],
    ["text c2VjcmV0\r\nand more\r\n", READ, failed("PowerShell ended with code 0")],
  ])("%j", (stdout, question, expected) => {
    expect(answer(question, ended({ stdout }))).toEqual(expected);
  });

  test("its command line is the same for each question and fits Windows", () => {
    const lines = [READ, WRITE, REMOVE].map((question) => run(question).args.join(" "));
    expect(new Set(lines).size).toBe(1);
    expect(lines[0]?.length).toBeLessThan(32_000);
  });
});

test("a system without a known store -> none", () => {
  expect(dialectOf("aix", {})).toBeUndefined();
});
