/** Owns: the explanation of a server that some file names and that does not exist. */
import { expect, test } from "vitest";
import { describeError } from "../../../../../src/shared/protocol/errors.ts";
import type { ConfigProblem } from "../../../../../src/shared/protocol/session.ts";
import { explainAbsent } from "../../../../../workers/connection/session/explain-server.ts";

const problem = (over: Partial<ConfigProblem>): ConfigProblem => ({
  severity: "error",
  file: "/m.json",
  line: 1,
  column: 2,
  message: "it is wrong",
  remedy: "Mend it.",
  ...over,
});
const STATE = {
  questions: [{ server: "asked", hash: "h", question: "asked: x" }],
  refused: [{ name: "refused", reason: "it was refused; /mcp trust asks again" }],
  problems: [
    problem({ key: "mcpServers.wrong" }),
    problem({ key: "mcpServers.typed.command" }),
    problem({ key: "mcpServers.odd", severity: "warning" }),
    problem({ key: "mcp-servers.other.one" }),
  ],
};
const explain = (name: string, state: Partial<typeof STATE> = {}): string | undefined => {
  const error = explainAbsent(name, { ...STATE, ...state });
  return error && describeError(error);
};

test.each([
  ["asked", "The server asked waits for your consent. /mcp trust asks for it."],
  ["refused", "The server refused is not started: it was refused; /mcp trust asks again. /mcp says more."],
  ["wrong", "The server wrong cannot be used. /m.json:1:2: mcpServers.wrong: it is wrong. Mend it."],
  [
    "other.one",
    "The server other.one cannot be used. /m.json:1:2: mcp-servers.other.one: it is wrong. Mend it.",
  ],
  ["typed", "The server typed cannot be used. /m.json:1:2: mcpServers.typed.command: it is wrong. Mend it."],
  ["odd", undefined],
  ["unknown", undefined],
])("%s -> %s", (name, text) => {
  expect(explain(name)).toBe(text);
});

test("any name, while a whole file cannot be used -> the place of the mistake in that file", () => {
  expect(explain("unknown", { problems: [problem({})] })).toBe(
    "No server named unknown is configured in a file that can be read. /m.json:1:2: it is wrong. Mend it.",
  );
});
