/** Owns: which requests the worker answers itself, and that each other one goes to the open session. */
import { describe, expect, test } from "vitest";
import { CONNECTION_METHODS } from "../../../../../src/shared/protocol/api.ts";
import { createHandlers } from "../../../../../workers/connection/rpc/rpc.ts";
import { recordingLog } from "../../recording-log.ts";
import { never } from "../session/support.ts";

const OWN = ["startSession", "matchTools", "ping", "log", "shutdown"];

function open() {
  const { log, lines } = recordingLog();
  const handlers = createHandlers({ emit: () => undefined, log, talkers: { of: () => () => undefined } });
  return { handlers, lines };
}

describe("createHandlers", () => {
  test("every method of the contract has a handler, and there is no other", () => {
    expect(Object.keys(open().handlers).sort()).toEqual([...CONNECTION_METHODS].sort());
  });

  test.each(CONNECTION_METHODS.filter((method) => !OWN.includes(method)))(
    "%s without a session -> runtime_stopped",
    async (method) => {
      const { handlers } = open();
      await expect(handlers[method]({} as never, never())).rejects.toMatchObject({ code: "runtime_stopped" });
    },
  );

  test("ping, log and shutdown without a session -> answered", async () => {
    const { handlers, lines } = open();
    expect(await handlers.ping({}, never())).toBeUndefined();
    await handlers.log({ level: "warn", message: "from main" }, never());
    await handlers.shutdown({}, never());
    expect(lines).toEqual(["warn from main", "info stopped"]);
  });
});
