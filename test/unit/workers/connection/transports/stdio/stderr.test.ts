/** Owns: no part of a secret is shown from a server's stderr, however the stderr is cut into chunks and lines. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { createRedactor } from "../../../../../../workers/connection/secrets/redact.ts";
import { createServerLog } from "../../../../../../workers/connection/servers/log.ts";
import { ServerStderr } from "../../../../../../workers/connection/transports/stdio/stderr.ts";
import type { Log } from "../../../../../../workers/shared/log.ts";

const SECRET = "s3cr3t-of-the-test-äöü";
const redact = createRedactor({ values: [SECRET], named: [] });
/** Any four characters of the secret in a row. */
const PART = new RegExp(
  Array.from({ length: SECRET.length - 3 }, (_, i) => SECRET.slice(i, i + 4)).join("|"),
);

/** The lines as the log would hold them. */
function follow(): { stderr: ServerStderr; lines: string[] } {
  const lines: string[] = [];
  const info = (message: string): void => void lines.push(message);
  const log = { info, warn: info, write: () => undefined } as unknown as Log;
  const serverLog = createServerLog("db", { log, redact });
  return { stderr: new ServerStderr((line) => serverLog.note(`stderr: ${line}`)), lines };
}

const take = (stderr: ServerStderr, piece: Buffer): void => {
  for (const _ of stderr.push(piece));
};

const inPieces = (text: string, size: number): Buffer[] => {
  const bytes = Buffer.from(text);
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );
};

test("a secret that is cut in two by chunks, at each byte -> whole lines, without it", () => {
  const text = `key ${SECRET} refused\n`;
  for (let size = 1; size <= Buffer.byteLength(text); size++) {
    const { stderr, lines } = follow();
    for (const piece of inPieces(text, size)) take(stderr, piece);
    expect(lines, `pieces of ${size}`).toEqual(["db stderr: key [redacted] refused"]);
    expect(stderr.tail(redact)).toBe("key [redacted] refused");
  }
});

test.each([
  ["LF", "one\ntwo\n", ["one", "two"]],
  ["CRLF", "one\r\ntwo\r\n", ["one", "two"]],
  ["CR, as a progress bar", "10 %\r20 %\r", ["10 %", "20 %"]],
  ["none at the end", "one\ntwo", ["one", "two"]],
  ["empty ones", "\n\none\n \n\ntwo\n", ["one", "two"]],
])("lines with %s -> each once", (_name, text, expected) => {
  const { stderr, lines } = follow();
  for (const piece of inPieces(text, 3)) take(stderr, piece);
  stderr.end();
  stderr.end();
  expect(lines).toEqual(expected.map((line) => `db stderr: ${line}`));
});

test.each([1_980, 1_990, 1_999, 2_000, 8_000, 40_950, 40_960, 41_000])(
  "a line with a secret at character %i, wherever it is cut -> no part of the secret",
  (at) => {
    const { stderr, lines } = follow();
    const text = `${"x".repeat(at)}${SECRET}${"y".repeat(50_000)}\n`;
    for (const piece of inPieces(text, 4_096)) take(stderr, piece);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^db stderr: \[a line of [\d,]+ bytes\] x+/);
    expect(lines[0]).not.toMatch(PART);
    expect(lines[0]?.length).toBeLessThan(2_100);
  },
);

test.each([100, 1_000, 7_999, 8_192, 9_000, 12_000, 32_000, 40_000, 40_955, 41_000, 60_000])(
  "an end that begins %i characters behind a secret -> no part of the secret",
  (behind) => {
    for (const size of [7, 4_096, 65_536]) {
      const { stderr } = follow();
      const text = `${`${SECRET} `.repeat(3_000)}${"y".repeat(behind)}`;
      for (const piece of inPieces(text, size)) take(stderr, piece);
      const tail = stderr.tail(redact);
      expect(tail, `pieces of ${size}`).not.toMatch(PART);
      expect(tail.length).toBeLessThanOrEqual(LIMITS.stderrTailBytes);
      expect(tail).toContain("y".repeat(Math.min(behind, 1_000)));
    }
  },
);

test("only long secrets, line by line -> no part of one is shown, also if the last part is cut", () => {
  const long = Array.from({ length: 200 }, (_, i) => `key${i.toString(36)}`).join("");
  const hide = createRedactor({ values: [long], named: [] });
  for (const end of ["\n", " "]) {
    const stderr = new ServerStderr(undefined);
    for (const piece of inPieces(`${long}${end}`.repeat(200), 1_000)) take(stderr, piece);
    expect(stderr.tail(hide)).not.toMatch(/key/);
  }
});

test("16 MiB without a line end -> a bounded memory and one line", () => {
  const { stderr, lines } = follow();
  const chunk = Buffer.alloc(65_536, "x");
  for (let i = 0; i < 256; i++) take(stderr, chunk);
  take(stderr, Buffer.from("\n"));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("[a line of 16,777,216 bytes] xxx");
  expect(stderr.tail(redact).trim()).toMatch(/^x{8000,8192}$/);
});
