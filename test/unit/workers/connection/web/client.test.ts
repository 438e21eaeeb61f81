/** Owns: the credentials that a URL holds, as they reach a server and a proxy on loopback. */
import { expect, test } from "vitest";
import { createHttpClient } from "../../../../../workers/connection/web/web.ts";
import { serve, type TestServer } from "../../../../support/http-server.ts";

const greets = (): Promise<TestServer> => serve((_asked, response) => response.writeHead(200).end());

const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString("base64")}`;

/** The URL with credentials as they are written. */
const withUser = (url: string, user: string): URL => new URL(url.replace("http://", `http://${user}@`));

async function ask(url: URL, env: Record<string, string> = {}): Promise<number> {
  const client = createHttpClient(env);
  const { status, body } = await client.request({
    method: "GET",
    url,
    headers: {},
    signal: new AbortController().signal,
  });
  body.destroy();
  client.close();
  return status;
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
