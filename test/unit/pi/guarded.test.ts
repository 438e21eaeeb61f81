import { expect, test } from "vitest";
import type { Pi } from "../../../src/pi/api.ts";
import type { PiCommandContext, PiContext } from "../../../src/pi/context.ts";
import { guardHandlers } from "../../../src/pi/guarded.ts";
import { createRecordingPi } from "../recording-pi.ts";

const STALE = "This extension ctx is stale after session replacement or reload.";

/** A context as Pi gives it: each use throws once the session is over. */
function contextUntil(isOver: () => boolean): PiContext {
  return new Proxy({} as PiContext, {
    get: () => {
      if (isOver()) throw new Error(STALE);
      return true;
    },
  });
}

type Heard = (event: unknown, ctx: unknown) => unknown;

function guard(): { pi: Pi; heard: Map<string, Heard>; recorded: ReturnType<typeof createRecordingPi> } {
  const recorded = createRecordingPi();
  const heard = new Map<string, Heard>();
  const on = (event: string, handler: Heard) => {
    heard.set(event, handler);
    return () => undefined;
  };
  return { pi: guardHandlers(Object.assign(recorded, { on: on as Pi["on"] })), heard, recorded };
}

test("a session ends while a handler runs -> the handler ends quietly, at once or later", async () => {
  const { pi, heard, recorded } = guard();
  let over = false;
  const ctx = contextUntil(() => over);
  const later = Promise.withResolvers<void>();
  pi.on("input", async (_event, { ui }) => {
    await later.promise;
    ui.notify("x");
    return { action: "handled" };
  });
  pi.on("input", async (_event, given) => {
    await later.promise;
    return { action: given.hasUI ? "handled" : "continue" };
  });
  pi.on("session_tree", (_event, given) => {
    over = true;
    given.ui.notify("x");
  });
  pi.registerCommand("x", {
    handler: async (_args, given) => {
      await later.promise;
      given.isIdle();
    },
  });
  const running = [
    heard.get("input")?.({}, ctx),
    recorded.commands.get("x")?.handler("", ctx as PiCommandContext),
  ];
  expect(heard.get("session_tree")?.({}, ctx)).toBeUndefined();
  later.resolve();
  expect(await Promise.all(running)).toEqual([{ action: "handled" }, undefined]);
});

test("a handler that fails in a session that goes on -> its error reaches Pi, and its answer too", async () => {
  const { pi, heard } = guard();
  const ctx = contextUntil(() => false);
  pi.on("input", async () => {
    throw new Error("mine");
  });
  await expect(heard.get("input")?.({}, ctx)).rejects.toThrow("mine");
  pi.on("input", async () => ({ action: "handled" }));
  expect(await heard.get("input")?.({}, ctx)).toEqual({ action: "handled" });
  pi.on("session_tree", () => {
    throw new Error("mine");
  });
  expect(() => heard.get("session_tree")?.({}, ctx)).toThrow("mine");
});
