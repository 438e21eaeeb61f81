/**
 * Owns: the credentials that a URL holds, who looks its host up, and how connections are opened, with servers and a proxy on
 * loopback.
 */
import { readFile } from "node:fs/promises";
import { IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer, type LookupFunction, Socket } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import manifest from "../../../../../package.json" with { type: "json" };
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { createHttpClient, refuseShreds } from "../../../../../workers/connection/web/client.ts";
import { lookUp, openSocket } from "../../../../../workers/connection/web/reach.ts";
import { createReader } from "../../../../../workers/shared/pace/turns.ts";
import { onCleanup } from "../../../../support/cleanup.ts";
import { serve, type TestServer } from "../../../../support/http-server.ts";

const greets = (): Promise<TestServer> => serve((_asked, response) => response.writeHead(200).end());

const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString("base64")}`;

/** The URL with credentials as they are written. */
const withUser = (url: string, user: string): URL => new URL(url.replace("http://", `http://${user}@`));

async function ask(
  url: URL,
  env: Record<string, string> = {},
  { lookup, ca = [] }: { lookup?: LookupFunction; ca?: readonly string[] } = {},
): Promise<number> {
  const client = createHttpClient(env, undefined, ca);
  try {
    const { status, body } = await client.request({
      method: "GET",
      url,
      headers: {},
      signal: new AbortController().signal,
      ...(lookup === undefined ? {} : { lookup }),
    });
    body.destroy();
    return status;
  } finally {
    client.close();
  }
}

const USERS: [written: string, sent: string][] = [
  ["me:secret", "me:secret"],
  ["me:p%40ss%2Fword", "me:p@ss/word"],
  ["m%C3%BC:%E6%BC%A2", "mü:漢"],
  ["me:100%", "me:100%"],
  ["key", "key:"],
];

test.each(USERS)("a URL with %s -> the server gets %s", async (written, sent) => {
  const server = await greets();
  expect(await ask(withUser(server.url, written))).toBe(200);
  expect(server.asked[0]?.headers.authorization).toBe(basic(sent));
});

test.each(USERS)("a proxy with %s -> the proxy gets %s and the whole address", async (written, sent) => {
  const proxy = await greets();
  const variables = { http_proxy: withUser(proxy.origin, written).href };
  expect(await ask(new URL("http://mcp.test/mcp?a=1"), variables)).toBe(200);
  const [asked] = proxy.asked;
  expect(asked?.headers["proxy-authorization"]).toBe(basic(sent));
  expect(asked?.path).toBe("http://mcp.test/mcp?a=1");
  expect(asked?.headers.host).toBe("mcp.test");
});

test("an answer -> it says from which address; behind a proxy it does not", async () => {
  const server = await greets();
  const from = async (env: Record<string, string>): Promise<string | undefined> => {
    const client = createHttpClient(env);
    const { signal } = new AbortController();
    const asked = { method: "GET" as const, url: new URL(server.url), headers: {}, signal };
    const { address, body } = await client.request(asked);
    body.destroy();
    client.close();
    return address;
  };
  expect(await from({})).toBe("127.0.0.1");
  expect(await from({ http_proxy: server.origin })).toBeUndefined();
});

test("a URL without credentials -> no Authorization header", async () => {
  const server = await greets();
  await ask(new URL(server.url));
  expect(server.asked[0]?.headers.authorization).toBeUndefined();
});

test.each([
  ["no header of its own", {}, `pi-mcp-threads/${manifest.version}`],
  ["User-Agent", { "User-Agent": "mine/1" }, "mine/1"],
  ["user-agent", { "user-agent": "mine/1" }, "mine/1"],
])("a request with %s -> the server learns who asks: $2", async (_name, headers, expected) => {
  const server = await greets();
  const client = createHttpClient({});
  onCleanup(client.close);
  const { signal } = new AbortController();
  const { body } = await client.request({ method: "GET", url: new URL(server.url), headers, signal });
  body.destroy();
  expect(server.asked[0]?.headers["user-agent"]).toBe(expected);
});

describe("a request that looks hosts up itself", () => {
  const named = ({ origin }: TestServer): URL => new URL(origin.replace("127.0.0.1", "mcp.test"));
  const counting = (): { lookup: LookupFunction; hosts: string[] } => {
    const hosts: string[] = [];
    const lookup: LookupFunction = (host, { all }, callback) => {
      hosts.push(host);
      if (all === true) callback(null, [{ address: "127.0.0.1", family: 4 }]);
      else callback(null, "127.0.0.1", 4);
    };
    return { lookup, hosts };
  };

  test("a name -> the address that it finds is asked", async () => {
    const server = await greets();
    const { lookup, hosts } = counting();
    expect(await ask(named(server), {}, { lookup })).toBe(200);
    expect(hosts).toEqual(["mcp.test"]);
  });

  test("an error -> the request is rejected with it, and nothing is sent", async () => {
    const server = await greets();
    const refused = new Error("refused");
    const lookup: LookupFunction = (_host, _options, callback) => callback(refused, []);
    await expect(ask(named(server), {}, { lookup })).rejects.toBe(refused);
    expect(server.asked).toEqual([]);
  });

  test("a proxy -> neither its own name nor the server's is looked up so", async () => {
    const proxy = await greets();
    const { lookup, hosts } = counting();
    const variables = { http_proxy: proxy.origin.replace("127.0.0.1", "localhost") };
    expect(await ask(new URL("http://mcp.test/"), variables, { lookup })).toBe(200);
    expect(hosts).toEqual([]);
  });
});

describe("an answer in short pieces", () => {
  const PIECES = 10_000;

  /** How many pieces of a heartbeat pass, each so long after the one before, and what is noted. */
  function passed(wanted: number, { everyMs, bytes = 3 }: { everyMs: number; bytes?: number }) {
    const notes: string[] = [];
    let now = 0;
    const response = new IncomingMessage(new Socket());
    response.on("error", () => undefined).resume();
    const reader = createReader({ onNote: (note) => notes.push(note) });
    refuseShreds(response, reader, () => now);
    let count = 0;
    for (; count < wanted && !response.destroyed; count++) {
      response.push(Buffer.alloc(bytes, ":"));
      now += everyMs;
    }
    return { count, notes };
  }

  test("they come at once -> broken off, with a line for the log", () => {
    const { count, notes } = passed(2 * PIECES, { everyMs: 0 });
    expect(count).toBe(PIECES);
    expect(notes).toEqual(["sends an answer in pieces of fewer than 8 bytes; the rest of it is not read"]);
  });

  test("they are a heartbeat that takes longer than the window -> read on, and counted anew", () => {
    const everyMs = (2 * LIMITS.noiseWindowMs) / PIECES;
    expect(passed(3 * PIECES, { everyMs })).toEqual({ count: 3 * PIECES, notes: [] });
  });

  test("they come at once, and hold enough -> read on", () => {
    expect(passed(3 * PIECES, { everyMs: 0, bytes: 8 })).toEqual({ count: 3 * PIECES, notes: [] });
  });
});

describe("each connection", () => {
  const never = new AbortController().signal;
  const fixture = (name: string) =>
    readFile(join(import.meta.dirname, "../../../../fixtures/http", name), "utf8");

  /** A proxy whose tunnels lead to this server. */
  async function tunnel({ url }: TestServer): Promise<string> {
    const proxy = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        const server = connect(Number(new URL(url).port), "127.0.0.1");
        server.on("error", () => undefined);
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        socket.pipe(server).pipe(socket);
      });
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    onCleanup(() => proxy.close());
    return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  }

  async function secured() {
    const tls = { key: await fixture("localhost.key"), cert: await fixture("localhost.pem") };
    const server = await serve((_asked, response) => response.writeHead(200).end(), tls);
    return { server, url: new URL(server.url.replace("127.0.0.1", "localhost")), ca: [tls.cert] };
  }

  const ROWS: [string, () => Promise<unknown>][] = [
    ["over http", async () => ask(new URL((await greets()).url))],
    [
      "over https",
      async () => {
        const { url, ca } = await secured();
        return ask(url, {}, { ca });
      },
    ],
    [
      "to a proxy that forwards",
      async () => ask(new URL("http://mcp.test/"), { http_proxy: (await greets()).origin }),
    ],
    [
      "to a proxy that opens a tunnel",
      async () => {
        const { server, url, ca } = await secured();
        return ask(url, { https_proxy: await tunnel(server) }, { ca });
      },
    ],
  ];

  /** The options with which sockets were opened. */
  function watchSockets(): () => object[] {
    const spy = vi.spyOn(Socket.prototype, "connect");
    return () =>
      spy.mock.calls.map((given) => {
        const [first] = given as unknown[];
        return (Array.isArray(first) ? first[0] : first) as object;
      });
  }

  afterEach(() => {
    vi.restoreAllMocks();
  });

  test.each(ROWS)(
    "%s -> an address has 2 s to answer, and the system asks whether it is still there",
    async (_name, open) => {
      const sockets = watchSockets();
      expect(await open()).toBe(200);
      const [first] = sockets();
      expect(first).toMatchObject({
        autoSelectFamilyAttemptTimeout: 2_000,
        keepAlive: true,
        keepAliveInitialDelay: 1_000,
      });
    },
  );

  test("of the doctor -> an address has 2 s to answer", async () => {
    const port = Number(new URL((await greets()).url).port);
    const addresses = await lookUp("127.0.0.1", never);
    const sockets = watchSockets();
    (await openSocket({ host: "mcp.test", port }, addresses, never)).destroy();
    expect(sockets()).toMatchObject([{ autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 2_000 }]);
  });
});
