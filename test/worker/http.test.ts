/** Owns: the real connection worker with working and faulty servers over HTTP. */
import { describe, expect, it, test } from "vitest";
import { fixture, forRows, freePort, start, startEverything, startHttp, textOf } from "./support.ts";

describe("connection worker: server-everything over HTTP", () => {
  const shared = forRows(async () => {
    const [streamable, sse] = [await startEverything("streamableHttp"), await startEverything("sse")];
    return start({
      streamable: { url: `${streamable}/mcp` },
      sse: { url: `${sse}/sse`, type: "sse" },
      "sse found": { url: `${sse}/sse` },
    });
  });

  it.each([
    ["streamable", "http"],
    ["sse", "sse"],
    ["sse found", "sse"],
  ])("%s -> connected over %s, tools and a call", async (name, transport) => {
    const at = await shared();
    const status = await at.settled(name);
    expect(status).toMatchObject({ state: "connected", transport });
    expect(status.toolCount).toBeGreaterThan(5);
    expect(textOf(await at.call(name, "echo", { message: "hi" }))).toBe("Echo: hi");
    const image = await at.call(name, "get-tiny-image");
    expect(image.content.map(({ type }) => type)).toEqual(["text", "image", "text"]);
  });

  it("times that no timer takes (2^31 ms, a fraction) -> connected, also over stdio", async () => {
    const url = `${await startEverything("streamableHttp")}/mcp`;
    const times = [2 ** 31, 1e300, 20_000.5].map((ms) => ({ startupTimeoutMs: ms, requestTimeoutMs: ms }));
    const servers = times.flatMap((more, n) => [
      [`http${n}`, { url, ...more }],
      [`stdio${n}`, fixture("waits.mjs", {}, more)],
    ]);
    const at = await start(Object.fromEntries(servers));
    for (const [name] of servers) {
      expect(await at.settled(String(name))).toMatchObject({ state: "connected" });
    }
    expect(textOf(await at.call("http0", "echo", { message: "hi" }))).toBe("Echo: hi");
  });
});

describe("connection worker: addresses without an MCP server", () => {
  const ADDRESSES = [
    ["a web page", 200, "text/html", "<!doctype html><p>hello", "connect_failed", /web page \(HTML\)/],
    ["a web page for an error", 500, "text/html", "<html>oops</html>", "connect_failed", /500/],
    [
      "401",
      401,
      "application/json",
      "{}",
      "needs_auth",
      /refused the key in the url of \S+mcp\.json:\d+ \(401\)\./,
    ],
    ["403 without a challenge", 403, "text/plain", "no", "connect_failed", /403/],
    ["404 to everything", 404, "text/plain", "nothing here", "connect_failed", /404/],
    ["503", 503, "text/plain", "later", "connect_failed", /503/],
    ["JSON that is not JSON-RPC", 200, "application/json", '{"hello":1}', "connect_failed", /./],
  ] as const;
  /** Several hosts write a key into the path. */
  const PATH_KEY = "aB3dE5gH7jK9mN1p";
  /** A name without the words of the title, because an error begins with its server's name. */
  const nameOf = (title: string): string => `s${ADDRESSES.findIndex(([one]) => one === title)}`;
  const shared = forRows(async () => {
    const servers = ADDRESSES.map(async ([title, status, type, body]) => {
      const origin = await startHttp((_request, response) => {
        response.writeHead(status, { "content-type": type }).end(body);
      });
      return [nameOf(title), { url: `${origin}/s/${PATH_KEY}/mcp?key=secret` }];
    });
    const silent = await startHttp(() => undefined);
    const keyed = await startHttp((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(401).end();
    });
    return start({
      ...Object.fromEntries(await Promise.all(servers)),
      refused: { url: `http://127.0.0.1:${await freePort()}/mcp` },
      silent: { url: `${silent}/mcp`, startupTimeoutMs: 100 },
      keyed: { url: `${keyed}/mcp`, headers: { authorization: "Bearer t0ken" } },
    });
  });
  /** What the server with headers was sent. */
  const seen: (string | undefined)[] = [];

  it.each(ADDRESSES)("$0 -> $4", async (title, _status, _type, _body, code, message) => {
    const at = await shared();
    const found = await at.settled(nameOf(title));
    expect(found).toMatchObject({ state: code === "needs_auth" ? "needs-auth" : "failed", error: { code } });
    expect(found.error?.message).toMatch(message);
    expect(found.error?.remedy).toMatch(/./);
    for (const text of [JSON.stringify(found), await at.log()]) {
      expect(text).not.toContain("secret");
      expect(text).not.toContain(PATH_KEY);
    }
  });

  test("connection refused -> connect_failed with ECONNREFUSED", async () => {
    const status = await (await shared()).settled("refused");
    expect(status).toMatchObject({ state: "failed", error: { code: "connect_failed" } });
    expect(status.error?.message).toContain("ECONNREFUSED");
  });

  test("a server that never answers -> connect_timeout after startupTimeoutMs", async () => {
    const at = await shared();
    expect(await at.settled("silent")).toMatchObject({ state: "failed", error: { code: "connect_timeout" } });
  });

  test("headers of the definition -> sent with each request", async () => {
    const at = await shared();
    await at.settled("keyed");
    expect(new Set(seen)).toEqual(new Set(["Bearer t0ken"]));
    expect(await at.log()).not.toContain("t0ken");
  });
});
