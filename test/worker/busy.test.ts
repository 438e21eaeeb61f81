/** Owns: servers over HTTP that are too busy to list their tools, new ones and known ones: real threads, real requests. */
import { expect, test } from "vitest";
import { answerWell, serve, type TestServer } from "../support/http-server.ts";
import { start } from "./support.ts";

/** Refuses each `tools/list` with 429 while `isBusy` answers true. `seconds`: its `Retry-After`. */
const busyServer = (seconds: number, isBusy: () => boolean): Promise<TestServer> =>
  serve((asked, response) => {
    if (asked.message.method !== "tools/list" || !isBusy()) return answerWell(asked, response);
    response.writeHead(429, { "retry-after": String(seconds) }).end();
  });

test("a new server lets the connect wait, and names the time -> the next attempt waits for that time alone", async () => {
  let isBusy = true;
  const server = await busyServer(1, () => isBusy);
  const at = await start({ s: { url: server.url } });
  await at.event("server", ({ status }) => status.state === "failed");
  // The connect took two seconds, in which it waited.
  const error = await at.failedCall("s", "echo");
  expect(error.data).toMatchObject({ reason: "busy" });
  // None on a machine that is so slow that the pause is over.
  expect(error.data?.retryInMs ?? 0).toBeLessThanOrEqual(1_000);
  isBusy = false;
  await expect
    .poll(() =>
      at.call("s", "echo").then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
});
