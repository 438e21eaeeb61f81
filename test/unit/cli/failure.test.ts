/** Owns: what a command says of an error of main or of the worker. */
import { expect, test } from "vitest";
import { asFailure } from "../../../src/cli/console/failure.ts";
import { type ErrorCode, ThreadsError } from "../../../src/shared/protocol/errors.ts";

test.each<[ErrorCode, code: number, remedy: string]>([
  ["runtime_stopped", 70, "Try once more."],
  ["deadline", 6, "Try once more; mcp-threads.log may say why."],
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
