/** Owns: what an address says by itself, in tables. */

import type { LookupAddress } from "node:dns";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import {
  addressProblem,
  hostOf,
  isPrivateIp,
  namesPrivateHost,
  type Resolve,
  shownAddress,
} from "../../../../../../workers/connection/auth/requests/addresses.ts";
import { createAuthRequests } from "../../../../../../workers/connection/auth/requests/requests.ts";
import type { HttpClient, ServerBody } from "../../../../../../workers/connection/web/client.ts";
import { problemOf, requestsFor, serving } from "./support.ts";

const PRIVATE = [
  ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255"],
  ...["127.0.0.1", "127.9.9.9", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8"],
  ...["192.168.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"],
  ...[
    "::",
    "::1",
    "::7f00:1",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "fec0::1",
    "ff02::1",
  ],
  ...["::ffff:10.0.0.1", "::ffff:a00:1", "::ffff:0:10.0.0.1", "64:ff9b::192.168.0.1", "64:ff9b::c0a8:1"],
  ...["64:ff9b:1::1", "2002:c0a8:1::1", "2002:7f00:1::"],
  ...["not an address", ""],
];

const PUBLIC_IPS = [
  ...["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "128.0.0.1", "169.253.1.1"],
  ...[
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "192.167.255.255",
    "192.169.0.0",
    "198.18.0.1",
    "223.255.255.255",
  ],
  ...["2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8", "::ffff:808:808", "64:ff9b::8.8.8.8"],
  ...["2002:808:808::1", "fbff::1", "fe00::1"],
];

test.each(PRIVATE)("%s -> private", (ip) => {
  expect(isPrivateIp(ip)).toBe(true);
});

test.each(PUBLIC_IPS)("%s -> public", (ip) => {
  expect(isPrivateIp(ip)).toBe(false);
});

describe("a host in a URL", () => {
  const HOSTS: [url: string, host: string, isPrivate: boolean][] = [
    ["https://2130706433/", "127.0.0.1", true],
    ["https://0x7f.1/", "127.0.0.1", true],
    ["https://0300.0250.1/", "192.168.0.1", true],
    ["https://10.0.0.1./", "10.0.0.1", true],
    ["https://[::ffff:127.0.0.1]/", "::ffff:7f00:1", true],
    ["https://[fd00::1]:8443/", "fd00::1", true],
    ["https://LocalHost./", "localhost", true],
    ["https://mcp.localhost/", "mcp.localhost", true],
    ["https://localhost.example.com/", "localhost.example.com", false],
    ["https://mcp.example.com./", "mcp.example.com", false],
    ["https://8.8.8.8/", "8.8.8.8", false],
    ["https://[2606:4700::1111]/", "2606:4700::1111", false],
  ];
  test.each(HOSTS)("%s -> %s, private: %s", (url, host, isPrivate) => {
    expect(hostOf(new URL(url))).toBe(host);
    expect(namesPrivateHost(new URL(url))).toBe(isPrivate);
  });
});

describe("the protocol", () => {
  const ROWS: [url: string, kind: string | undefined][] = [
    ["https://as.example.com/token", undefined],
    ["https://10.0.0.1/token", undefined],
    ["http://127.0.0.1:8080/token", undefined],
    ["http://127.8.0.1/token", undefined],
    ["http://localhost/token", undefined],
    ["http://localhost./token", undefined],
    ["http://[::1]:3000/token", undefined],
    ["http://as.example.com/token", "not-https"],
    ["http://192.168.0.1/token", "not-https"],
    ["http://localhost.example.com/token", "not-https"],
    ["http://127.0.0.1.example.com/token", "not-https"],
    ["http://[::ffff:127.0.0.1]/token", "not-https"],
    ["ftp://as.example.com/token", "not-https"],
    ["javascript:alert(1)", "not-https"],
    ["file:///etc/passwd", "not-https"],
    ["https://me@as.example.com/token", "bad-answer"],
    ["https://:secret@as.example.com/token", "bad-answer"],
  ];
  test.each(ROWS)("%s -> %s", (url, kind) => {
    expect(addressProblem(new URL(url))?.kind).toBe(kind);
  });
});

test.each([
  ["javascript:alert(1)", "javascript:alert(1)"],
  ["file:///etc/passwd?a", "file:/etc/passwd"],
  ["vscode://host/path#b", "vscode://host/path"],
])("%s, which has no origin -> shown as %s", (address, shown) => {
  expect(shownAddress(new URL(address))).toBe(shown);
});

test("an address with credentials, a query and a fragment -> none of these is shown", () => {
  expect(shownAddress(new URL("https://me:secret@as.example.com:444/a/b?code=1#c"))).toBe(
    "https://as.example.com:444/a/b",
  );
});

const PUBLIC = "https://mcp.example.com/mcp";

/** Names and their addresses; other names do not exist. */
const names =
  (table: Record<string, string[]>): Resolve =>
  async (host) => {
    const found = table[host];
    if (!found) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: "ENOTFOUND" });
    return found.map((address): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 }));
  };

/** A web whose every answer comes from the address. */
const answeringFrom = (address: string | undefined, log: string[]): HttpClient => ({
  request: async ({ url }) => {
    log.push(url.href);
    const body: ServerBody = Readable.from([Buffer.from("{}")]);
    return { status: 200, headers: { "content-type": "application/json" }, body, address };
  },
  close: () => undefined,
});

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

  test.each<[name: string, from: string | undefined, isAsked: boolean]>([
    ["a private address", "10.0.0.7", true],
    ["a private address, mapped", "::ffff:10.0.0.7", true],
    ["a public address", "93.184.216.34", false],
    ["a proxy", undefined, false],
  ])(
    "a server of a private name that has answered from %s -> asked: %s, %s",
    async (_from, address, isAsked) => {
      const log: string[] = [];
      const client = answeringFrom(address, log);
      // The public address was told to the connection, the private one is what the name leads to now.
      const resolve = names({ "mcp.corp.example": ["10.0.0.7"] });
      const server = new URL("https://mcp.corp.example/mcp");
      const reached = { isPublic: false };
      const options = { client, server, resolve, reached, signal: new AbortController().signal };
      await createAuthRequests(options).fetch("https://mcp.corp.example/.well-known/x", {});
      for (const url of ["http://127.0.0.1:6379/token", "https://10.0.0.8/token"]) {
        // The requests of another grant of the same sign-in.
        const asking = createAuthRequests(options).fetch(url, {});
        if (isAsked) expect((await asking).status).toBe(200);
        else expect((await problemOf(asking)).kind).toBe("private-address");
      }
      expect(log).toHaveLength(isAsked ? 3 : 1);
    },
  );

  test("another host that has answered from a public address -> the server may still name private ones", async () => {
    const resolve = names({ "mcp.corp.example": ["10.0.0.7"], "as.example.com": ["93.184.216.34"] });
    const server = new URL("https://mcp.corp.example/mcp");
    const requests = createAuthRequests({
      ...{ client: answeringFrom("93.184.216.34", []), server, resolve },
      signal: new AbortController().signal,
    });
    await requests.fetch("https://as.example.com/.well-known/x", {});
    expect((await requests.fetch("http://127.0.0.1:1/token", {})).status).toBe(200);
  });

  test("an address that the user wrote -> asked", async () => {
    const { origin, port } = await serving({ a: 1 });
    const resolve = names({ "mcp.example.com": ["93.184.216.34"], localhost: ["127.0.0.1"] });
    const trusted = ["no address", `http://localhost:${port}/.well-known/openid-configuration`];
    const requests = requestsFor(PUBLIC, { resolve, trusted });
    expect((await requests.fetch(`http://localhost:${port}/`, {})).status).toBe(200);
    expect((await problemOf(requests.fetch(origin, {}))).kind).toBe("private-address");
  });
});

describe("names behind a proxy", () => {
  const TABLE = {
    "mcp.example.com": ["93.184.216.34"],
    "as.example.com": ["93.184.216.35"],
    "git.corp.example": ["10.0.0.1"],
    "both.example.com": ["93.184.216.34", "10.0.0.1"],
    "mcp.corp.example": ["10.0.0.7"],
    // As a local proxy answers every name.
    "made-up.example.com": ["198.18.0.9", "fc00::9"],
    "mixed.example.com": ["198.18.0.9", "10.0.0.1"],
    "local.example.com": ["198.20.0.9", "fc00::9"],
  };
  const silent: Resolve = () => new Promise(() => undefined);
  const OPEN = { kind: "unreachable", connects: 1 };
  const SHUT = { kind: "private-address", connects: 0 };

  test.each<[server: string, url: string, outcome: typeof OPEN, resolve: Resolve]>([
    [PUBLIC, "https://as.example.com/token", OPEN, names(TABLE)],
    [PUBLIC, "https://unknown.example.com/token", OPEN, names(TABLE)],
    [PUBLIC, "https://as.example.com/token", OPEN, silent],
    [PUBLIC, "https://git.corp.example/token", SHUT, names(TABLE)],
    [PUBLIC, "https://git.corp.example./token", SHUT, names(TABLE)],
    [PUBLIC, "https://both.example.com/token", SHUT, names(TABLE)],
    [PUBLIC, "https://10.0.0.1/token", SHUT, names(TABLE)],
    [PUBLIC, "https://made-up.example.com/token", OPEN, names(TABLE)],
    [PUBLIC, "https://mixed.example.com/token", SHUT, names(TABLE)],
    [PUBLIC, "https://local.example.com/token", SHUT, names(TABLE)],
    ["https://mcp.corp.example/mcp", "https://git.corp.example/token", OPEN, names(TABLE)],
    ["https://mcp.corp.example/mcp", "https://mcp.corp.example/token", OPEN, names(TABLE)],
  ])("%s names %s -> %o", async (server, url, outcome, resolve) => {
    const connects: string[] = [];
    const proxy = createServer().on("connect", (request, socket) => {
      connects.push(request.url ?? "");
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    await new Promise<void>((resolved) => proxy.listen(0, "127.0.0.1", resolved));
    const env = { https_proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
    const { kind } = await problemOf(requestsFor(server, { resolve, env }).fetch(url, {}));
    await new Promise((done) => proxy.close(done));
    expect({ kind, connects: connects.length }).toEqual(outcome);
  });
});

describe("http on this machine behind a proxy", () => {
  const LOCAL = "http://localhost:1/mcp";
  const resolve = names({ "mcp.example.com": ["93.184.216.34"] });

  test.each<[server: string, trusted: string[], kind: string]>([
    [LOCAL, [], "not-https"],
    [PUBLIC, ["http://127.0.0.1/m"], "not-https"],
    // No advice that would let a public server's request through.
    [PUBLIC, [], "private-address"],
  ])("%s names it, and the user %j -> %s, and the proxy gets nothing", async (server, trusted, kind) => {
    const proxy = await serving({ a: 1 });
    const requests = requestsFor(server, { resolve, trusted, env: { http_proxy: proxy.origin } });
    const problem = await problemOf(requests.fetch("http://127.0.0.1:1/token", { method: "POST" }));
    expect(problem.kind).toBe(kind);
    expect(proxy.log).toEqual([]);
  });

  test("NO_PROXY names it -> asked, without the proxy", async () => {
    const [proxy, server] = [await serving({ a: 1 }), await serving({ a: 2 })];
    const env = { http_proxy: proxy.origin, no_proxy: "127.0.0.1" };
    expect((await requestsFor(LOCAL, { env }).fetch(`${server.origin}/`, {})).status).toBe(200);
    expect(proxy.log).toEqual([]);
  });
});
