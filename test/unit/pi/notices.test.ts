/** Owns: no part of a notice acts on the terminal. */
import { expect, test } from "vitest";
import { notify } from "../../../src/pi/notices.ts";
import { createRecordingContext } from "../recording-context.ts";

test.each([
  ["plain words, on two lines", "a: b\nc", "a: b\nc"],
  ["an escape sequence in a name", "mcp.json: + \u001b[2J\u001b[1;31mdocs\u001b[0m", "mcp.json: + docs"],
  [
    "a link, a title, a bell",
    "\u001b]8;;http://x\u0007docs\u001b]8;;\u0007 \u001b]0;t\u0007!\u0007",
    "docs !",
  ],
  ["marks that change the direction of text", "\u202egnp.exe", "gnp.exe"],
])("%s", (_, message, shown) => {
  const { ctx, notices } = createRecordingContext();
  notify(ctx, message, "warning");
  expect(notices).toEqual([[shown, "warning"]]);
});
