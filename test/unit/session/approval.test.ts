/** Owns: the way of the question whether a tool may run through a session on the main thread, and its end. */
import { expect, test } from "vitest";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import { settled } from "../settled.ts";
import { openSession } from "./support.ts";

const asked = (id: string): WorkerEvent => ({
  type: "approval",
  id,
  question: { server: "s", tool: "t", args: "", canAlways: true },
});

const answers = { answerApproval: () => undefined };

test("a question of the worker -> a dialog, whose answer goes to the worker", async () => {
  const at = await openSession({ answers, select: () => "Allow for this session" });
  at.send(asked("1"));
  await expect
    .poll(() => at.runtimes[0]?.asked)
    .toEqual([["answerApproval", { id: "1", answer: "session" }]]);
  expect(at.dialogs).toHaveLength(1);
});

test("the worker cannot write the rule -> the user reads why", async () => {
  const at = await openSession({
    answers: { answerApproval: () => Promise.reject(new Error("mcp.json could not be written.")) },
    select: () => "Always allow",
  });
  at.send(asked("1"));
  await expect.poll(() => at.notices).toEqual([["MCP: mcp.json could not be written.", "error"]]);
});

test.each(["the worker crashes", "the session ends"])(
  "%s while the dialog is open -> it closes without an answer",
  async (how) => {
    let closed = false;
    const at = await openSession({ answers });
    at.ctx.ui.select = (_title, _choices, { signal } = {}) =>
      new Promise((resolve) => {
        signal?.addEventListener("abort", () => {
          closed = true;
          resolve(undefined);
        });
        at.dialogs.push({ method: "select", title: "" });
      });
    at.send(asked("1"));
    await expect.poll(() => at.dialogs).toHaveLength(1);
    if (how === "the session ends") await at.session.stop();
    else at.runtimes[0]?.options.onCrash({ reason: "exit code 7", givenUp: false });
    await expect.poll(() => closed).toBe(true);
    await settled();
    expect(at.runtimes[0]?.asked).toEqual([]);
  },
);
