/** Owns: the way of the worker's questions through a session on the main thread, and their end. */
import { expect, test } from "vitest";
import { settled } from "../settled.ts";
import { type Opened, openSession } from "./support.ts";

/** Asks as the worker does. */
const ask = (at: Opened, signal = new AbortController().signal): Promise<unknown> | undefined =>
  at.runtimes[0]?.options.onQuestion?.(
    {
      about: "call",
      callId: "1",
      server: "s",
      tool: "t",
      args: "",
      canAlways: true,
      call: { server: "s", tool: "t", args: {} },
    },
    signal,
  );

test("a question of the worker -> a dialog, whose answer goes to the worker", async () => {
  const at = await openSession({ select: () => "Allow this tool for this session" });
  expect(await ask(at)).toBe("session");
  expect(at.dialogs).toHaveLength(1);
});

test("the worker cannot carry the answer out -> the user reads why", async () => {
  const at = await openSession();
  at.send({ type: "notice", text: "mcp.json could not be written.", level: "error" });
  expect(at.notices).toEqual([["MCP: mcp.json could not be written.", "error"]]);
});

test("no browser can be started for a page -> the address", async () => {
  const at = await openSession();
  at.send({ type: "unopened", server: "s", url: "https://example.com/a" });
  await expect
    .poll(() => at.notices)
    .toEqual([["No browser could be started. The page of MCP server s:\nhttps://example.com/a", "warning"]]);
});

test("the question is taken back while the dialog is open -> it closes without an answer", async () => {
  const closed = Promise.withResolvers<undefined>();
  const at = await openSession();
  at.ctx.ui.select = (_title, _choices, { signal } = {}) => {
    signal?.addEventListener("abort", () => closed.resolve(undefined));
    at.dialogs.push({ method: "select", title: "" });
    return closed.promise;
  };
  const over = new AbortController();
  const answer = ask(at, over.signal);
  await expect.poll(() => at.dialogs).toHaveLength(1);
  over.abort();
  expect(await answer).toBeUndefined();
});

test("the session has ended -> nothing is asked", async () => {
  const at = await openSession();
  await at.session.stop();
  expect(await ask(at)).toBeUndefined();
  await settled();
  expect(at.dialogs).toEqual([]);
});
