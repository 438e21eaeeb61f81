/** Owns: the private addresses that no public server may name, with real servers on loopback. */
import type { LookupAddress } from "node:dns";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import type { Resolve } from "../../../../../../workers/connection/auth/requests/addresses.ts";
import { problemOf, requestsFor, serving } from "./support.ts";

const PUBLIC = "https://mcp.example.com/mcp";

/** Names and their addresses; other names do not exist. */
const names =
  (table: Record<string, string[]>): Resolve =>
  async (host) => {
    const found = table[host];
    if (!found) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: "ENOTFOUND" });
    return found.map((address): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 }));
  };

describe("where nothing is sent", () => {
  const WRONG: [server: string, url: string, kind: string][] = [
    [PUBLIC, "http://as.example.com/token", "not-https"],
    [PUBLIC, "file:///etc/passwd", "not-https"],
    [PUBLIC, "https://a:b@as.example.com/token", "bad-answer"],
    [PUBLIC, "no address?code=1", "bad-answer"],
    [PUBLIC, "https://10.0.0.1/token", "private-address"],
    [PUBLIC, "https://[::ffff:169.254.169.254]/token", "private-address"],
    [PUBLIC, "https://0x7f000001/token", "private-address"],
    [PUBLIC, "http://127.0.0.1/token", "private-address"],
    [PUBLIC, "http://localhost./token", "private-address"],
    [PUBLIC, "https://inside.example.com/token", "private-address"],
    [PUBLIC, "https://both.example.com/token", "private-address"],
    ["https://both.example.com/mcp", "http://127.0.0.1/token", "private-address"],
    ["https://both.example.com/mcp", "https://inside.example.com/token", "private-address"],
    ["https://gone.example.com/mcp", "http://127.0.0.1/token", "private-address"],
    ["http://192.168.0.9/mcp", "http://192.168.0.9/token", "not-https"],
  ];
  const resolve = names({
    "mcp.example.com": ["93.184.216.34"],
    "inside.example.com": ["192.168.0.1"],
    "both.example.com": ["93.184.216.34", "fd00::1"],
  });
  test.each(WRONG)("%s names %s -> %s", async (server, url, kind) => {
    const problem = await problemOf(requestsFor(server, { resolve }).fetch(url, {}));
    expect(problem.kind).toBe(kind);
    expect(JSON.stringify(problem.facts)).not.toMatch(/a:b|code=/);
  });
});

describe("private addresses that may be asked", () => {
  test("a server on loopback names another port -> asked", async () => {
    const { origin } = await serving({ a: 1 });
    expect((await requestsFor("http://localhost:1/mcp").fetch(origin, {})).status).toBe(200);
  });

  test("a server whose name leads to a private network -> asked", async () => {
    const { origin } = await serving({ a: 1 });
    const resolve = names({ "mcp.corp.example": ["10.0.0.7"] });
    const requests = requestsFor("https://mcp.corp.example/mcp", { resolve });
    expect((await requests.fetch(origin, {})).status).toBe(200);
  });

  test("an address that the user wrote -> asked", async () => {
    const { origin, port } = await serving({ a: 1 });
    const resolve = names({ "mcp.example.com": ["93.184.216.34"], localhost: ["127.0.0.1"] });
    const trusted = ["no address", `http://localhost:${port}/.well-known/openid-configuration`];
    const requests = requestsFor(PUBLIC, { resolve, trusted });
    expect((await requests.fetch(`http://localhost:${port}/`, {})).status).toBe(200);
    expect((await problemOf(requests.fetch(origin, {}))).kind).toBe("private-address");
  });

  test("a name behind a proxy -> the proxy finds its addresses", async () => {
    const asked: string[] = [];
    const connects: string[] = [];
    const proxy = createServer().on("connect", (request, socket) => {
      connects.push(request.url ?? "");
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const resolve: Resolve = async (host) => {
      asked.push(host);
      return [{ address: "10.0.0.1", family: 4 }];
    };
    const env = { https_proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
    const requests = requestsFor(PUBLIC, { resolve, env });
    const problem = await problemOf(requests.fetch("https://as.example.com/token", {}));
    await new Promise((done) => proxy.close(done));
    expect(problem).toMatchObject({
      kind: "unreachable",
      facts: { what: expect.stringMatching(/proxy .* 502$/) },
    });
    expect(connects).toEqual(["as.example.com:443"]);
    expect(asked).toEqual([]);
  });
});
