/** Owns: the credentials that a URL holds, and who looks its host up, with a server and a proxy on loopback. */
import type { LookupFunction } from "node:net";
import { describe, expect, test } from "vitest";
import { createHttpClient } from "../../../../../workers/connection/web/client.ts";
import { serve, type TestServer } from "../../../../support/http-server.ts";

const greets = (): Promise<TestServer> => serve((_asked, response) => response.writeHead(200).end());

const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString("base64")}`;

/** The URL with credentials as they are written. */
const withUser = (url: string, user: string): URL => new URL(url.replace("http://", `http://${user}@`));

async function ask(url: URL, env: Record<string, string> = {}, lookup?: LookupFunction): Promise<number> {
  const client = createHttpClient(env);
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

test("a URL without credentials -> no Authorization header", async () => {
  const server = await greets();
  await ask(new URL(server.url));
  expect(server.asked[0]?.headers.authorization).toBeUndefined();
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
    expect(await ask(named(server), {}, lookup)).toBe(200);
    expect(hosts).toEqual(["mcp.test"]);
  });

  test("an error -> the request is rejected with it, and nothing is sent", async () => {
    const server = await greets();
    const refused = new Error("refused");
    const lookup: LookupFunction = (_host, _options, callback) => callback(refused, []);
    await expect(ask(named(server), {}, lookup)).rejects.toBe(refused);
    expect(server.asked).toEqual([]);
  });

  test("a proxy -> neither its own name nor the server's is looked up so", async () => {
    const proxy = await greets();
    const { lookup, hosts } = counting();
    const variables = { http_proxy: proxy.origin.replace("127.0.0.1", "localhost") };
    expect(await ask(new URL("http://mcp.test/"), variables, lookup)).toBe(200);
    expect(hosts).toEqual([]);
  });
});
