/** Owns: when a look at a task counts as progress of its call. */
import { expect, test } from "vitest";
import { followTask } from "../../../../../../workers/connection/mcp/modern/rounds.ts";

test("a task works on without a change -> each answered look is progress, and one without an answer is none", async () => {
  const { signal } = new AbortController();
  const answers = ["working", "silence", "working", "working", "completed"];
  const told: string[] = [];
  const result = await followTask(
    { resultType: "task", taskId: "1", status: "working" },
    {
      party: { server: "s", subject: "s/t", asks: undefined, onNote: () => undefined, signal },
      request: async () => {
        const status = answers.shift();
        if (status === "silence") throw new Error("no answer");
        return { status, ...(status === "completed" ? { result: { content: [] } } : {}) };
      },
      cancel: () => undefined,
      isUnanswered: () => true,
      failure: () => new Error("failed"),
      onStatus: (message) => told.push(message),
      wait: async () => undefined,
    },
  );
  expect(result).toEqual({ content: [] });
  expect(told).toEqual(["working", "working", "working", "working", "completed"]);
});
