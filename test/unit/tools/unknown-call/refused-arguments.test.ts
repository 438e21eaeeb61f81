/** Owns: which results get the expected parameters of a tool whose arguments Pi refused. */
import { expect, it } from "vitest";
import type { FinishedMessage } from "../../../../src/pi/api.ts";
import { explainRefusedArguments } from "../../../../src/tools/unknown-call/refused-arguments.ts";
import { makeCatalog } from "../../make-catalog.ts";

const catalog = makeCatalog([{ name: "s", tools: [{ tool: "go" }] }]);
const REFUSED = 'Validation failed for tool "s__go":\n  - a: missing';
const message = (text: string, rest: Partial<FinishedMessage> = {}): FinishedMessage => ({
  role: "toolResult",
  toolName: "s__go",
  isError: true,
  content: [{ type: "text", text }],
  ...rest,
});

it("refused arguments of our tool -> the expected parameters after Pi's words", () => {
  expect(explainRefusedArguments(message(REFUSED), () => catalog)?.content).toEqual([
    { type: "text", text: REFUSED },
    { type: "text", text: "Expected parameters: s__go()" },
  ]);
});

it.each<[string, FinishedMessage]>([
  ["another tool's", message('Validation failed for tool "bash": x', { toolName: "bash" })],
  ["a tool that no catalog knows", message('Validation failed for tool "s__x": x', { toolName: "s__x" })],
  ["a server's own words", message("Validation failed: x")],
  ["a result", message(REFUSED, { isError: false })],
  ["what a user wrote", message(REFUSED, { role: "user" })],
  ["content that is not a list", message(REFUSED, { content: REFUSED })],
  ["no content", message(REFUSED, { content: [] })],
])("%s -> left as it is", (_name, given) => {
  expect(explainRefusedArguments(given, () => catalog)).toBeUndefined();
});
