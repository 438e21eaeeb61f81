/** Owns: servers and proxies whose certificate comes from an authority that only `caFile` names. */
import { readFileSync } from "node:fs";
import { createServer as createTlsServer, type ServerOptions } from "node:https";
import { type AddressInfo, connect as connectSocket } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { connect } from "../../workers/connection/transports/transports.ts";
import { createHttpClient } from "../../workers/connection/web/client.ts";
import {
  answerWell,
  connectOptions,
  type Handler,
  resultOf,
  serve,
  startEvents,
} from "../support/http-server.ts";

const fixtures = join(import.meta.dirname, "..", "fixtures", "http");
const caFile = join(fixtures, "localhost.pem");
/** Self-signed for localhost and 127.0.0.1, valid until 2126. The key is public and used nowhere else. */
const cert = readFileSync(caFile, "utf8");
const tls = { key: readFileSync(join(fixtures, "localhost.key"), "utf8"), cert };

async function toolsOf(
  entry: Record<string, unknown>,
  settings: { caFile?: string } = {},
): Promise<string[]> {
  const connection = await connect(connectOptions(entry, { ...settings, retryMs: [] }));
  onTestFinished(() => connection.close({ termMs: 1, killMs: 1 }));
  const tools = await connection.listTools(new AbortController().signal);
  return tools.map(({ name }) => name);
}

/** An https proxy for tunnels and for plain requests, which answers the latter itself. */
async function startTlsProxy(): Promise<{ url: string; log: string[] }> {
  const log: string[] = [];
  const proxy = createTlsServer(tls, (request, response) => {
    log.push(`${request.method} ${request.url}`);
    response.end();
  });
  proxy.on("connect", (request, socket) => {
    log.push(`CONNECT ${request.url}`);
    const target = connectSocket(Number(request.url?.split(":").at(-1)), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.pipe(target).pipe(socket);
    });
    for (const end of [socket, target]) end.on("error", () => target.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return { url: `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`, log };
}

async function statusOf(url: string, env: Record<string, string>, ca?: string[]): Promise<number | string> {
  const client = createHttpClient(env, undefined, ca);
  onTestFinished(() => client.close());
  const { signal } = new AbortController();
  return client.request({ method: "GET", url: new URL(url), headers: {}, signal }).then(
    ({ status, body }) => {
      body.destroy();
      return status;
    },
    (error: NodeJS.ErrnoException) => error.code ?? error.message,
  );
}

test("no caFile -> the certificate is not trusted, and the remedy names caFile", async () => {
  const server = await serve(answerWell, tls);
  await expect(toolsOf({ url: server.url })).rejects.toMatchObject({
    code: "connect_failed",
    remedy: expect.stringContaining('"caFile"'),
  });
  expect(server.asked).toEqual([]);
});

test.each([
  ["of the server", { caFile }, {}],
  ["of the settings", {}, { caFile }],
  ["of both", { caFile }, { caFile }],
])("caFile %s -> the server's tools are listed", async (_name, own, settings) => {
  const server = await serve(answerWell, tls);
  expect(await toolsOf({ url: server.url, ...own }, settings)).toEqual(["echo"]);
});

/** The server's own address as one names it that stands behind a proxy for TLS. */
const asHttp = (path: string, { headers }: { headers: { host?: string | undefined } }): string =>
  `http://${headers.host}${path}`;

test("a server behind a proxy for TLS redirects to its own address over http -> followed over https", async () => {
  const server = await serve((asked, response) => {
    if (asked.path === "/mcp") response.writeHead(307, { location: asHttp("/mcp/", asked) }).end();
    else answerWell(asked, response);
  }, tls);
  expect(await toolsOf({ url: server.url, caFile })).toEqual(["echo"]);
  expect(server.asked.map(({ path }) => path)).toContain("/mcp/");
});

test("such a redirect that would lose the body -> the error names the address over https", async () => {
  const server = await serve((asked, response) => {
    response.writeHead(301, { location: asHttp("/mcp/", asked) }).end();
  }, tls);
  await expect(toolsOf({ url: server.url, caFile })).rejects.toMatchObject({
    message: expect.stringContaining(`redirects to ${server.url}/, which is not followed`),
  });
});

test("such a server names an address over http for messages -> they go to it over https", async () => {
  let stream: ReturnType<typeof startEvents> | undefined;
  const handler: Handler = (asked, response) => {
    if (asked.http === "GET") {
      stream = startEvents(response);
      stream.write(`event: endpoint\ndata: ${asHttp("/messages", asked)}\n\n`);
      return;
    }
    response.writeHead(202).end();
    if (asked.message.id !== undefined) stream?.write(`data: ${resultOf(asked.message)}\n\n`);
  };
  const server = await serve(handler, tls);
  expect(await toolsOf({ url: server.url, type: "sse", caFile })).toEqual(["echo"]);
});

test("a redirect to another port over http -> not followed, and the remedy warns of it", async () => {
  const other = await serve(answerWell);
  const server = await serve((_asked, response) => {
    response.writeHead(307, { location: other.url }).end();
  }, tls);
  await expect(toolsOf({ url: server.url, caFile })).rejects.toMatchObject({
    message: expect.stringContaining(
      `redirects to ${other.url}, which is not followed because that is another`,
    ),
    remedy: expect.stringContaining("Over http, keys and answers would travel in the open."),
  });
  expect(other.asked).toEqual([]);
});

test("a caFile -> a certificate for another host name is still refused", async () => {
  const [server, proxy] = [await serve(answerWell, tls), await startTlsProxy()];
  const url = server.url.replace("127.0.0.1", "mcp.test");
  expect(await statusOf(url, { https_proxy: proxy.url }, [cert])).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  expect(proxy.log).toEqual([`CONNECT ${new URL(url).host}`]);
});

test("an https proxy of that authority -> trusted for tunnels and for plain requests", async () => {
  const [secure, proxy] = [
    await serve((_asked, response) => void response.end(), tls),
    await startTlsProxy(),
  ];
  const env = { https_proxy: proxy.url, http_proxy: proxy.url };
  expect(await statusOf(secure.url, env)).toBe("DEPTH_ZERO_SELF_SIGNED_CERT");
  expect(await statusOf("http://mcp.test/x", env)).toBe("DEPTH_ZERO_SELF_SIGNED_CERT");
  expect(proxy.log).toEqual([]);
  expect(await statusOf(secure.url, env, [cert])).toBe(200);
  expect(await statusOf("http://mcp.test/x", env, [cert])).toBe(200);
  expect(proxy.log).toEqual([`CONNECT ${new URL(secure.url).host}`, "GET http://mcp.test/x"]);
});

test("two requests with a caFile -> one connection", async () => {
  const ports = new Set<number | undefined>();
  const server = createTlsServer(tls, (request, response) => {
    ports.add(request.socket.remotePort);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const client = createHttpClient({}, undefined, [cert]);
  onTestFinished(() => client.close());
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (const _ of [1, 2]) {
    const { signal } = new AbortController();
    const { body } = await client.request({ method: "GET", url, headers: {}, signal });
    await body.resume().toArray();
    // The agent takes the socket back when the answer has been read.
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(ports.size).toBe(1);
});

const REFUSES: [string, ServerOptions, words: string][] = [
  [
    "another version of TLS",
    { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" },
    "tlsv1 alert protocol version",
  ],
  [
    "a certificate of the client",
    { requestCert: true, rejectUnauthorized: true, maxVersion: "TLSv1.2" },
    "ssl/tls alert handshake failure",
  ],
];
test.each(REFUSES)(
  "a server that wants %s -> the error says so, and never advises http",
  async (_name, wants, words) => {
    const server = createTlsServer({ ...tls, ...wants }, (_request, response) => response.end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const at = `127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const [secure, plain] = await Promise.all(
      [`https://${at}`, `http://${at}`].map((url) =>
        toolsOf({ url, caFile }).then(
          () => expect.unreachable("connected"),
          (error: ThreadsError) => error,
        ),
      ),
    );
    expect(secure?.message).toBe(`web: https://${at} did not agree to a TLS connection: ${words}.`);
    expect(secure?.remedy).not.toContain("http://");
    expect(plain?.message).toContain("it speaks TLS, so the url must begin with https://");
  },
);
