/** Owns: the error vocabulary: the wire form, its decoder, and the texts made from it. */
import { describe, expect, it, test } from "vitest";
import {
  describeError,
  ERROR_CODES,
  fromWireError,
  messageOf,
  ThreadsError,
  toWireError,
  type WireError,
  withoutServer,
} from "../../../../src/shared/protocol/errors.ts";

const clone = (wire: WireError): WireError => structuredClone(wire);

describe("toWireError and fromWireError", () => {
  it.each(ERROR_CODES)("round trip of code %s -> the same code, message, remedy and data", (code) => {
    const error = new ThreadsError(code, "who: what", {
      remedy: "do this",
      data: { server: "a", n: [1, null] },
    });
    const back = fromWireError(clone(toWireError(error)));
    expect(back).toBeInstanceOf(ThreadsError);
    expect(back).toMatchObject({
      code,
      message: "who: what",
      remedy: "do this",
      data: { server: "a", n: [1, null] },
    });
  });

  test("toWireError: an error without remedy and data -> neither key on the wire", () => {
    expect(Object.keys(toWireError(new ThreadsError("cancelled", "m")))).toEqual(["code", "message"]);
  });

  test("fromWireError: without remedy and data -> both undefined", () => {
    const back = fromWireError({ code: "cancelled", message: "m" });
    expect([back.remedy, back.data]).toEqual([undefined, undefined]);
  });

  it.each([
    ["an Error", new Error("disk full"), "disk full"],
    ["a TypeError", new TypeError("x is not a function"), "x is not a function"],
    ["a system error with a code of its own", Object.assign(new Error("no"), { code: "ENOENT" }), "no"],
    ["a string", "plain", "plain"],
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["a number", 7, "7"],
  ])("toWireError: %s -> internal with only its message", (_name, thrown, message) => {
    expect(toWireError(thrown)).toEqual({ code: "internal", message });
  });

  it.each(["", "ENOENT", "toString", "__proto__", undefined, 5])(
    "fromWireError: code %j -> internal",
    (code) => {
      const wire = { code, message: "m", remedy: "r", data: { a: 1 } } as unknown as WireError;
      expect(fromWireError(wire)).toMatchObject({
        code: "internal",
        message: "m",
        remedy: "r",
        data: { a: 1 },
      });
    },
  );

  test("toWireError: an error with a cause -> the wire form has no cause and can be cloned", () => {
    const error = new ThreadsError("connect_failed", "m", { cause: () => "cannot be cloned" });
    expect(error.cause).toBeTypeOf("function");
    expect(clone(toWireError(error))).toEqual({ code: "connect_failed", message: "m" });
  });
});

test("ThreadsError -> an Error with its own name, and a cause only if one is given", () => {
  const error = new ThreadsError("deadline", "late");
  expect(error).toBeInstanceOf(Error);
  expect(error.name).toBe("ThreadsError");
  expect("cause" in error).toBe(false);
});

test("describeError: message and remedy -> one line; message alone -> the message", () => {
  expect(describeError({ message: "It failed.", remedy: "Try again." })).toBe("It failed. Try again.");
  expect(describeError({ message: "It failed." })).toBe("It failed.");
});

it.each([
  [new Error("m"), "m"],
  ["text", "text"],
  [{ toString: (): string => "odd" }, "odd"],
])("messageOf: %j -> %s", (thrown, message) => {
  expect(messageOf(thrown)).toBe(message);
});

it.each([
  ["s: no answer.", "no answer."],
  ["s could not be connected.", "it could not be connected."],
  ["server s: no answer.", "server no answer."],
  ["sense: no", "sense: no"],
])("withoutServer: %s -> %s", (message, expected) => {
  expect(withoutServer("s", message)).toBe(expected);
});
