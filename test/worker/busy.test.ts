/** Owns: servers over HTTP that are too busy to list their tools, new ones and known ones: real threads, real requests. */
import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { type Asked, answerWell, serve, type TestServer } from "../support/http-server.ts";
import { createPlace, endAll, start, textOf } from "./support.ts";

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

const PAGES = 6;

/** Answers a page of the tools, of which the first has `echo`. */
function answerPage({ message }: Asked, response: ServerResponse): void {
  const { id, params } = message as { id: number; params?: { cursor?: string } };
  const page = Number(params?.cursor ?? 0);
  const tools = [{ name: page === 0 ? "echo" : `tool${page}`, inputSchema: { type: "object" } }];
  const result = { tools, ...(page + 1 < PAGES ? { nextCursor: String(page + 1) } : {}) };
  response
    .writeHead(200, { "content-type": "application/json" })
    .end(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

test("the waits for the pages of a known server take longer than its start may -> its known tools can be called", async () => {
  const place = await createPlace();
  let isBusy = false;
  const refused = new Set<string>();
  const server = await serve((asked, response) => {
    if (asked.message.method !== "tools/list") return answerWell(asked, response);
    const page = JSON.stringify(asked.message.params ?? {});
    if (!isBusy || refused.has(page)) return answerPage(asked, response);
    refused.add(page);
    response.writeHead(429, { "retry-after": "1" }).end();
  });
  const entry = { url: server.url, startupTimeoutMs: 4_000 };
  const before = await start({ s: entry }, { place });
  expect((await before.settled("s")).toolCount).toBe(PAGES);
  await endAll(before);
  isBusy = true;
  const at = await start({ s: entry }, { place });
  expect(textOf(await at.call("s", "echo", { text: "hello" }))).not.toBe("");
  expect(await at.log()).toContain("s cannot list its tools now, and keeps those of before: ");
  expect((await at.settled("s")).toolCount).toBe(PAGES);
});
