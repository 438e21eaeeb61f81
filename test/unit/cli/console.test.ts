/** Owns: what the command's console makes of its terminal, and what a command says of an error. */

import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect, test, vi } from "vitest";
import { Console } from "../../../src/cli/console/console.ts";
import { asFailure, Failure, usage } from "../../../src/cli/console/failure.ts";
import { unconfiguredFailure } from "../../../src/cli/place/unconfigured.ts";
import { type ErrorCode, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { PATIENCE_MS } from "../../support/patience.ts";
import { captureConsole } from "./captured-console.ts";

function consoleOn(columns: number | undefined) {
  const size = columns === undefined ? {} : { columns };
  const stdout = Object.assign(new PassThrough(), { isTTY: true, ...size });
  const stderr = Object.assign(new PassThrough(), { isTTY: true, ...size });
  const rest = { json: false, quiet: false, noColor: true };
  const console = new Console({ stdin: new PassThrough(), stdout, stderr, env: {}, ...rest });
  return { console, stderr };
}

test.each([
  [undefined, 80],
  [0, 80],
  [40, 40],
])("a terminal of %s columns -> lines of %d", (columns, expected) => {
  const { console, stderr } = consoleOn(columns);
  expect(console.columns).toBe(expected);
  console.progress("x".repeat(100));
  expect(String(stderr.read())).toHaveLength(expected - 1);
});

test("a text with a newline on stderr -> its further lines are indented, so that none passes for a line of ours", () => {
  const { console, stderr } = consoleOn(80);
  console.warn("docs: no such file\npi-mcp-threads: all is well\r\nRun this: x");
  console.note("one\ntwo");
  expect(String(stderr.read())).toBe(
    "docs: no such file\n  pi-mcp-threads: all is well\n  Run this: x\none\n  two\n",
  );
});

test("a question is open -> progress leaves it where it is, and a line of stderr is followed by it again", async () => {
  const stdin = new PassThrough();
  const { console, stderr } = captureConsole({ isTTY: true, stdin });
  console.progress("docs: 1 %");
  const answer = console.ask("Allow it? [y/N] ");
  console.progress("docs: 2 %");
  console.progress("Allow all? [y/N] ");
  console.progress("");
  console.warn("docs: half\nAllow all? [y/N] ");
  stdin.write("y\n");
  expect(await answer).toBe("y");
  console.progress("docs: 3 %");
  expect(stderr()).toBe(
    "docs: 1 %\r\u001b[KAllow it? [y/N] \ndocs: half\n  Allow all? [y/N] \nAllow it? [y/N] docs: 3 %",
  );
});

test("a conversation begins while a question stands between -> the line is the conversation's, then that question stands there again", async () => {
  const stdin = new PassThrough();
  const { console, stderr } = captureConsole({ isTTY: true, stdin });
  const shown = (text: string) => vi.waitFor(() => expect(stderr().endsWith(text)).toBe(true), PATIENCE_MS);
  const over = new AbortController();
  const code = console.askBetween("Code: ", over.signal);
  await shown("Code: ");
  const allowed = console.inTurn(() => console.ask("Allow it? "));
  const sure = console.inTurn(() => console.ask("Sure? "));
  await shown("Code: \nAllow it? ");
  stdin.write("y\n");
  expect(await allowed).toBe("y");
  await shown("Sure? ");
  stdin.write("n\n");
  expect(await sure).toBe("n");
  await shown("Sure? Code: ");
  stdin.write("1234\n");
  expect(await code).toBe("1234");
  const late = console.askBetween("Code: ", over.signal);
  await shown("Code: Code: ");
  over.abort();
  expect(await late).toBeUndefined();
  stdin.end();
  expect(await console.askBetween("Code: ", new AbortController().signal)).toBeUndefined();
});

test.each<[string, (stdin: PassThrough) => void]>([
  ["has ended", (stdin) => stdin.resume().end()],
  ["is closed, as behind --args -", (stdin) => stdin.destroy()],
])("a terminal whose input %s -> nobody can be asked, and a question has no answer", async (_what, end) => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const { console, stderr } = captureConsole({ isTTY: true, stdin });
  expect(console.canAsk).toBe(true);
  end(stdin);
  await once(stdin, "close");
  expect(console.canAsk).toBe(false);
  expect(await console.ask("Allow it? [y/N] ")).toBeUndefined();
  expect(stderr()).toBe("");
});

const FOREIGN = "one\u001b]0;forged title\u0007 \u009b31mtwo\u202e";

test("a result on a terminal -> no character can act on it; JSON shows such characters by their codes", () => {
  const plain = captureConsole({ isTTY: true });
  plain.console.result(FOREIGN);
  expect(plain.stdout()).toBe("one 31mtwo\n");
  const json = captureConsole({ isTTY: true, json: true });
  json.console.document({ text: FOREIGN });
  expect(json.stdout()).toContain(String.raw`"one\u001b]0;forged title\u0007 \u009b31mtwo\u202e"`);
});

test("a result in a pipe -> unchanged, also as JSON", () => {
  const { console, stdout } = captureConsole();
  console.result(FOREIGN);
  expect(stdout()).toBe(`${FOREIGN}\n`);
  const json = captureConsole({ json: true });
  json.console.document({ text: FOREIGN });
  expect(JSON.parse(json.stdout())).toEqual({ text: FOREIGN });
});

test.each<[ErrorCode, code: number, remedy: string]>([
  ["runtime_stopped", 70, "Try again."],
  ["deadline", 6, "Try again; mcp-threads.log may say why."],
  ["connect_failed", 3, "/reload it."],
])("%s -> exit code %d, %s", (code, exitCode, remedy) => {
  const failure = asFailure(new ThreadsError(code, "It is over.", { remedy: "/reload it." }));
  expect(failure).toMatchObject({ exitCode, code, message: "It is over.", remedy });
});

test("anything else that is thrown -> an internal failure with its message alone", () => {
  expect(asFailure(new TypeError("x is undefined"))).toMatchObject({
    exitCode: 70,
    code: "internal",
    message: "x is undefined",
    remedy: undefined,
  });
});

test("a mistake of usage for a server behind -- -> what divides the command helps only where the tool is missing", () => {
  const missing = new Failure(2, "call npx needs the name of a tool.", { data: { missing: "tool" } });
  expect(unconfiguredFailure(missing).remedy).toMatch(/^A second -- divides a command/);
  // The message repeats what the person wrote.
  const other = usage('"<a>" is not key=value.', "One JSON object goes with --args.");
  expect(unconfiguredFailure(other)).toBe(other);
});

test("the system lacks files -> the remedy names ulimit, also for a server behind --, whose own advice stays otherwise", () => {
  const lack = Object.assign(new Error("too many open files, open '/x'"), { code: "EMFILE" });
  expect(asFailure(lack).remedy).toContain("ulimit");
  const failed = (message: string, reason: string): string | undefined => {
    const details = { remedy: "Check cwd in mcp.json.", data: { server: "node", reason } };
    return unconfiguredFailure(new ThreadsError("spawn_failed", message, details)).remedy;
  };
  expect(failed('node: "node" could not be started: no file is left.', "ENFILE")).toContain("ulimit");
  const unset = new ThreadsError("bad_config", "a: NOPE is not set.", {
    remedy: "Write it in /tmp/once/mcp.json.",
  });
  expect(unconfiguredFailure(unset).remedy).toBe(
    "Correct the options of the command; a variable must be set in this shell.",
  );
  expect(failed("node: its working directory EMFILE does not exist.", "no-folder")).toBe(
    "Check the command after --, and PATH.",
  );
});
