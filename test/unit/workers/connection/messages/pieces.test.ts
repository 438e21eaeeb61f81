/** Owns: keeping the bytes of an unfinished message at a bounded cost, in whatever pieces they come. */
import { expect, test } from "vitest";
import { Blocks, createPieces, type Received } from "../../../../../workers/connection/messages/pieces.ts";
import { createRandom } from "../../../random.ts";

const allOf = (received: Received): Buffer =>
  received instanceof Blocks ? Buffer.concat(received.blocks) : received;

test("pieces of every size, taken at random times -> the same bytes in order", () => {
  const random = createRandom(7);
  const pieces = createPieces();
  for (let round = 0; round < 20; round++) {
    const expected: Buffer[] = [];
    for (let i = random.below(300); i > 0; i--) {
      const size = random.below(10) === 0 ? random.below(50_000) : random.below(100);
      const piece = Buffer.alloc(size, random.below(256));
      expected.push(piece);
      pieces.push(piece);
    }
    const whole = Buffer.concat(expected);
    expect(pieces.bytes).toBe(whole.length);
    expect(allOf(pieces.take()).equals(whole)).toBe(true);
    expect(pieces.bytes).toBe(0);
  }
});

test("bytes that were taken -> unchanged when more bytes come", () => {
  const pieces = createPieces();
  const take = (byte: string): Received => {
    for (let i = 0; i < 100; i++) pieces.push(Buffer.from(byte));
    return pieces.take();
  };
  const first = take("a");
  take("b");
  expect(allOf(first).toString()).toBe("a".repeat(100));
});

test("one large piece -> not copied", () => {
  const pieces = createPieces();
  const piece = Buffer.alloc(100_000);
  pieces.push(piece);
  expect(pieces.take()).toBe(piece);
});

test("a long message, in pieces of every size -> the same bytes, in blocks with memory of their own", () => {
  const random = createRandom(11);
  const pieces = createPieces();
  const expected: Buffer[] = [];
  while (pieces.bytes < 5 * 1024 * 1024) {
    const piece = Buffer.alloc(
      random.below(2) === 0 ? random.below(200_000) : random.below(100),
      random.below(256),
    );
    expected.push(piece);
    pieces.push(piece);
  }
  const taken = pieces.take();
  if (!(taken instanceof Blocks)) throw new Error("not in blocks");
  expect(taken.length).toBe(Buffer.concat(expected).length);
  expect(allOf(taken).equals(Buffer.concat(expected))).toBe(true);
  expect(taken.blocks.every((block) => block.byteOffset === 0)).toBe(true);
  expect(new Set(taken.blocks.map(({ buffer }) => buffer)).size).toBe(taken.blocks.length);
  expect(pieces.bytes).toBe(0);
});
