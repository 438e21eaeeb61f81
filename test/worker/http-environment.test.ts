/** Owns: proxies and certificate authorities from environment variables, in a worker thread of a separate process. */
import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { answerWell, serve } from "../support/http-server.ts";
import { oneFile } from "../support/one-file.ts";

const run = promisify(execFile);
const fixtures = join(import.meta.dirname, "..", "fixtures", "http");

interface Outcome {
  tools?: string[];
  code?: string;
  message?: string;
  remedy?: string;
}

type Target = string | { url: string; ca: readonly string[] };

/** One process and one thread with these variables for all the targets. */
async function connectInWorker(env: Record<string, string>, ...targets: Target[]): Promise<Outcome[]> {
  const given = targets.map((target) => (typeof target === "string" ? { url: target } : target));
  const program = oneFile("connect-in-worker", join(fixtures, "connect-in-worker.mjs"));
  const { stdout } = await run(process.execPath, [program.file, JSON.stringify(given)], {
    env: { PATH: process.env.PATH, ...program.env, ...env },
  });
  return JSON.parse(stdout) as Outcome[];
}

/** Starts a proxy. `log` grows by one line for each request to it. */
async function startProxy(env: Record<string, string> = {}): Promise<{ host: string; log: string[] }> {
  const proxy = spawn(process.execPath, [join(fixtures, "proxy.mjs")], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(async () => {
    const ended = new Promise((resolve) => proxy.once("close", resolve));
    proxy.kill("SIGKILL");
    await ended;
  });
  const log: string[] = [];
  const lines = createInterface(proxy.stdout);
  const port = await new Promise<string>((resolve) => lines.once("line", resolve));
  lines.on("line", (line) => log.push(line));
  return { host: `127.0.0.1:${port}`, log };
}

/** A certificate of the fixtures; its key is public and used nowhere else. */
const certified = (name: string): { key: string; cert: string } => ({
  key: readFileSync(join(fixtures, `${name}.key`), "utf8"),
  cert: readFileSync(join(fixtures, `${name}.pem`), "utf8"),
});
/** For 127.0.0.1 and mcp.test, until 2120, as that for other.test. Nobody has the key of their authority. */
const tls = certified("mcp.test");
const otherName = certified("other.test");
const AUTHORITY = join(fixtures, "authority.pem");

const WORKS: Outcome = { tools: ["echo"] };
/** Only the proxy knows this name. */
const throughProxy = ({ url }: { url: string }): string => url.replace("127.0.0.1", "mcp.test");

test.each([
  ["HTTP_PROXY and HTTPS_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"],
  ["http_proxy and https_proxy", "http_proxy", "https_proxy", "no_proxy"],
])(
  "%s -> an http server is reached through the proxy, an https server through its tunnel, a host of $3 directly",
  async (_name, ofHttp, ofHttps, none) => {
    const [server, secure, direct] = [
      await serve(answerWell),
      await serve(answerWell, tls),
      await serve(answerWell),
    ];
    const proxy = await startProxy();
    const origin = `http://${proxy.host}`;
    const env = { [ofHttp]: origin, [ofHttps]: origin, [none]: "a.test,127.0.0.1" };
    const [url, secureUrl] = [throughProxy(server), throughProxy(secure)];
    expect(
      await connectInWorker({ ...env, NODE_EXTRA_CA_CERTS: AUTHORITY }, url, secureUrl, direct.url),
    ).toEqual([WORKS, WORKS, WORKS]);
    expect(proxy.log).toContain(`POST ${url}`);
    expect(proxy.log).toContain(`CONNECT ${new URL(secureUrl).host}`);
    expect(proxy.log.filter((line) => line.startsWith("POST") && !line.includes(url))).toEqual([]);
    expect(proxy.log.join()).not.toContain(new URL(direct.url).port);
    expect(proxy.log.join()).not.toContain(`POST ${secureUrl}`);
  },
);

test("a proxy with name and password, http and https -> sent to the proxy only", async () => {
  const servers = [await serve(answerWell), await serve(answerWell, tls)];
  const proxy = await startProxy({ PROXY_USER: "me:p@ss" });
  const origin = `http://me:p%40ss@${proxy.host}`;
  const env = { HTTP_PROXY: origin, HTTPS_PROXY: origin, NODE_EXTRA_CA_CERTS: AUTHORITY };
  expect(await connectInWorker(env, ...servers.map(({ url }) => url))).toEqual([WORKS, WORKS]);
  const seen = servers.flatMap(({ asked }) => asked);
  expect(seen.every(({ headers }) => headers["proxy-authorization"] === undefined)).toBe(true);
});

test("a proxy refuses the password, http and https -> the error says so, without the password", async () => {
  const proxy = await startProxy({ PROXY_USER: "me:secret" });
  const origin = `http://you:wrong@${proxy.host}`;
  const urls = ["http", "https"].map((scheme) => `${scheme}://mcp.test:1/mcp`);
  const outcomes = await connectInWorker({ HTTP_PROXY: origin, HTTPS_PROXY: origin }, ...urls);
  expect(outcomes).toHaveLength(2);
  for (const [at, { message, remedy }] of outcomes.entries()) {
    expect(message).toMatch(/^web: \S+ could not be reached: the proxy .*answered 407\.$/);
    expect(message).toContain(`web: ${urls[at]} could`);
    expect(remedy).toContain("The proxy wants a name and password");
  }
  expect(JSON.stringify(outcomes)).not.toContain("wrong");
});

test("a proxy that does not run, and a variable that is no URL -> the error names it without its secret", async () => {
  const server = await serve(answerWell);
  await server.close();
  const { host } = new URL(server.url);
  const env = { HTTP_PROXY: `http://me:secret@${host}`, HTTPS_PROXY: "socks5://secret:1" };
  const [gone, wrong] = await connectInWorker(env, "http://mcp.test/mcp", "https://mcp.test/mcp");
  expect(gone?.message).toBe(
    `web: http://mcp.test/mcp could not be reached through the proxy ${host} (ECONNREFUSED).`,
  );
  expect(wrong?.message).toContain("HTTPS_PROXY does not hold an http or https URL");
  expect(JSON.stringify([gone, wrong])).not.toContain("secret");
});

test("NODE_EXTRA_CA_CERTS names the authority -> trusted, alone and beside a caFile's, but for no other host name", async () => {
  const own = certified("localhost");
  const [server, ofFile, other] = [
    await serve(answerWell, tls),
    await serve(answerWell, own),
    await serve(answerWell, otherName),
  ];
  const ca = [own.cert];
  const [alone, beside, fromFile, wrong] = await connectInWorker(
    { NODE_EXTRA_CA_CERTS: AUTHORITY },
    server.url,
    { url: server.url, ca },
    { url: ofFile.url, ca },
    other.url,
  );
  expect([alone, beside, fromFile]).toEqual([WORKS, WORKS, WORKS]);
  expect(wrong?.message).toContain("its certificate is for another host name (ERR_TLS_CERT_ALTNAME_INVALID)");
});

test("no NODE_EXTRA_CA_CERTS -> the certificate is not trusted, a plain request finds that the server speaks TLS", async () => {
  const server = await serve(answerWell, tls);
  const [outcome, plain] = await connectInWorker({}, server.url, server.url.replace("https:", "http:"));
  expect(outcome?.code).toBe("connect_failed");
  expect(outcome?.message).toContain("its certificate comes from an authority that is not known here");
  expect(outcome?.remedy).toContain("NODE_EXTRA_CA_CERTS");
  expect(plain?.message).toContain("it speaks TLS, so the url must begin with https://");
  expect(server.asked).toEqual([]);
});
