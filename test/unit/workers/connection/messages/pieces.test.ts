/** Owns: keeping the bytes of an unfinished message at a bounded cost, in whatever pieces they come. */
import { expect, test } from "vitest";
import { createPieces } from "../../../../../workers/connection/messages/pieces.ts";
import { createRandom } from "../../../random.ts";

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
    expect(pieces.take().equals(whole)).toBe(true);
    expect(pieces.bytes).toBe(0);
  }
});

test("bytes that were taken -> unchanged when more bytes come", () => {
  const pieces = createPieces();
  const take = (byte: string): Buffer => {
    for (let i = 0; i < 100; i++) pieces.push(Buffer.from(byte));
    return pieces.take();
  };
  const first = take("a");
  take("b");
  expect(first.toString()).toBe("a".repeat(100));
});

test("one large piece -> not copied", () => {
  const pieces = createPieces();
  const piece = Buffer.alloc(100_000);
  pieces.push(piece);
  expect(pieces.take()).toBe(piece);
});
