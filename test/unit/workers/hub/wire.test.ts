/** Owns: the frames between the hub and a session, however they are cut, and the proofs before them. */
import { randomBytes } from "node:crypto";
import { describe, expect, it, test } from "vitest";
import {
  type Came,
  controlFrame,
  FrameReader,
  type FromHub,
  headOf,
  isProof,
  NONCE_BYTES,
  newNonce,
  proofOf,
} from "../../../../workers/shared/hub/wire.ts";

const frame = (kind: "data" | "errors", text: string): Buffer => {
  const body = Buffer.from(text);
  return Buffer.concat([headOf(kind, body.length), body]);
};

function read(bytes: Buffer, length: number, frames = new FrameReader<FromHub>()): Came<FromHub>[] {
  const came: Came<FromHub>[] = [];
  for (let at = 0; at < bytes.length; at += length)
    came.push(...frames.push(bytes.subarray(at, at + length)));
  return came;
}

/** Pieces of a stream that follow each other as one. */
const joined = (came: Came<FromHub>[]): unknown[] => {
  const out: [string, unknown][] = [];
  for (const one of came) {
    const before = out.at(-1);
    if (one.kind === "control") out.push(["control", one.message]);
    else if (before?.[0] === one.kind) before[1] = `${before[1]}${one.piece.toString("latin1")}`;
    else out.push([one.kind, one.piece.toString("latin1")]);
  }
  return out;
};

describe("FrameReader", () => {
  const exit: FromHub = { is: "exit", code: null, signal: "SIGKILL" };
  const dropped: FromHub = { is: "dropped", why: "é漢😀" };
  const bytes = Buffer.concat([
    frame("data", "one\n"),
    frame("errors", "out of ink"),
    controlFrame(dropped),
    frame("data", ""),
    controlFrame(exit),
    frame("data", "x".repeat(70_000)),
  ]);
  const all = [
    ["data", "one\n"],
    ["errors", "out of ink"],
    ["control", dropped],
    ["control", exit],
    ["data", "x".repeat(70_000)],
  ];

  test("frames cut at each byte -> the same frames", () => {
    for (let at = 0; at < bytes.length - 69_990; at++) {
      const frames = new FrameReader<FromHub>();
      const came = [...frames.push(bytes.subarray(0, at)), ...frames.push(bytes.subarray(at))];
      expect(joined(came)).toEqual(all);
    }
  });

  it.each([1, 2, 5, 6, 1_000])("pieces of %i bytes -> the same frames", (length) => {
    expect(joined(read(bytes, length))).toEqual(all);
  });

  test("a part of a stream's frame -> handed on before the rest comes", () => {
    const came = read(frame("data", "a long message").subarray(0, 11), 100);
    expect(joined(came)).toEqual([["data", "a long"]]);
  });

  it.each([
    ["an unknown kind", Buffer.from([9, 0, 0, 0, 1, 0])],
    ["a control frame over the limit", headOf("control", 101)],
    ["a control frame that is no JSON", Buffer.concat([headOf("control", 1), Buffer.from("{")])],
  ])("%s -> throws", (_name, wrong) => {
    expect(() => read(wrong, 3, new FrameReader<FromHub>(100))).toThrow();
  });

  test("a control frame within the limit -> read", () => {
    const control = controlFrame(exit);
    expect(joined(read(control, 3, new FrameReader<FromHub>(control.length - 5)))).toEqual([
      ["control", exit],
    ]);
  });

  test("more than a frame can name -> throws", () => {
    expect(() => headOf("data", 2 ** 32)).toThrow("a frame of");
  });
});

describe("proofs", () => {
  const key = randomBytes(32);
  const nonces = { hub: newNonce(), session: newNonce() };
  const proof = proofOf("hub", key, nonces);

  test("the same side, secret and nonces -> proven", () => {
    expect(isProof(proofOf("hub", Buffer.from(key), { ...nonces }), proof)).toBe(true);
    expect(nonces.hub).toHaveLength(NONCE_BYTES);
    expect(nonces.hub).not.toEqual(nonces.session);
  });

  it.each([
    ["the other side", () => proofOf("session", key, nonces)],
    ["another secret", () => proofOf("hub", randomBytes(32), nonces)],
    ["another nonce of the hub", () => proofOf("hub", key, { ...nonces, hub: newNonce() })],
    ["another nonce of the session", () => proofOf("hub", key, { ...nonces, session: newNonce() })],
    ["the nonces exchanged", () => proofOf("hub", key, { hub: nonces.session, session: nonces.hub })],
    ["a part of it", () => proof.subarray(0, 31)],
    ["nothing", () => Buffer.alloc(0)],
  ])("%s -> not proven", (_name, other) => {
    expect(isProof(other(), proof)).toBe(false);
  });
});
