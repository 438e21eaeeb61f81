/** Owns: what `serve --http` keeps of a session that does not begin. */
import { expect, test } from "vitest";
import { overHttp } from "../../../../src/cli/serve/endpoint.ts";
import { type Listing, ServedTools } from "../../../../src/cli/serve/tools.ts";
import { onCleanup } from "../../../support/cleanup.ts";

const TOKEN = "a-token-of-this-test";

/** Knows how many lists are kept. */
class Counted extends ServedTools {
  readonly kept = new Set<Listing>();

  override listing(options?: { isShared?: boolean }): Listing {
    const listing = super.listing(options);
    this.kept.add(listing);
    return listing;
  }

  override drop(listing: Listing): void {
    super.drop(listing);
    this.kept.delete(listing);
  }
}

async function listening() {
  const tools = new Counted(() => undefined);
  const { url, close } = await overHttp(tools, { port: 0, token: TOKEN, onNote: () => undefined });
  onCleanup(close);
  const begins = tools.kept.size;
  const initialize = async (headers: Record<string, string>) => {
    const params = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "a", version: "1" },
    };
    const { status, body } = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    });
    await body?.cancel();
    return status;
  };
  return { initialize, kept: () => tools.kept.size - begins };
}

const JSON_TYPE = "application/json";

test.each([
  [406, { "content-type": JSON_TYPE, accept: JSON_TYPE }],
  [415, { "content-type": "text/plain", accept: `${JSON_TYPE}, text/event-stream` }],
])("an initialize that is refused with %i -> nothing of it is kept", async (status, headers) => {
  const { initialize, kept } = await listening();
  expect([await initialize(headers), await initialize(headers)]).toEqual([status, status]);
  expect(kept()).toBe(0);
});

test("an initialize that is accepted -> its list is kept", async () => {
  const { initialize, kept } = await listening();
  const headers = { "content-type": JSON_TYPE, accept: `${JSON_TYPE}, text/event-stream` };
  expect(await initialize(headers)).toBe(200);
  expect(kept()).toBe(1);
});
