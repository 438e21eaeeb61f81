/** Owns: which errors say that a file of the package is gone. */
import { expect, test } from "vitest";
import { isFileGone } from "../../../../workers/shared/log.ts";

const gone = Object.assign(new Error("Cannot find module"), { code: "ERR_MODULE_NOT_FOUND" });

test.each<[string, unknown, boolean]>([
  ["the error of an import()", gone, true],
  ["an error that it caused", new Error("web: failed", { cause: new Error("inner", { cause: gone }) }), true],
  ["a file of the user that is not there", Object.assign(new Error("no"), { code: "ENOENT" }), false],
  [
    "an error that causes itself",
    Object.assign(new Error("a"), {
      get cause() {
        return this;
      },
    }),
    false,
  ],
  ["no error", undefined, false],
])("%s -> %#", (_, error, expected) => {
  expect(isFileGone(error)).toBe(expected);
});
