/** Owns: proxies and certificate authorities from environment variables, in a worker thread of a separate process. */
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
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

async function connectInWorker(
  url: string,
  env: Record<string, string>,
  ca?: readonly string[],
): Promise<Outcome> {
  const target = JSON.stringify({ url, ca });
  const program = oneFile("connect-in-worker", join(fixtures, "connect-in-worker.mjs"));
  const { stdout } = await run(process.execPath, [program.file, target], {
    env: { PATH: process.env.PATH, ...program.env, ...env },
  });
  return JSON.parse(stdout) as Outcome;
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

let dir: string;
let tls: { key: string; cert: string };
let otherName: { key: string; cert: string };
const authority = (): string => join(dir, "ca.pem");

async function certificate(name: string, subject: string): Promise<{ key: string; cert: string }> {
  const at = (extension: string): string => join(dir, `${name}.${extension}`);
  const openssl = (...args: string[]) => run("openssl", args);
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await openssl("req", ...ec, "-keyout", at("key"), "-out", at("csr"), "-subj", "/CN=server");
  await writeFile(at("ext"), `subjectAltName=${subject}\n`);
  const signed = ["-CA", authority(), "-CAkey", join(dir, "ca.key"), "-CAcreateserial", "-days", "2"];
  await openssl("x509", "-req", "-in", at("csr"), ...signed, "-extfile", at("ext"), "-out", at("pem"));
  return { key: await readFile(at("key"), "utf8"), cert: await readFile(at("pem"), "utf8") };
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "http-tls-"));
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const files = ["-keyout", join(dir, "ca.key"), "-out", authority()];
  await run("openssl", ["req", "-x509", ...ec, ...files, "-subj", "/CN=Test authority", "-days", "2"]);
  tls = await certificate("server", "IP:127.0.0.1,DNS:mcp.test");
  otherName = await certificate("other", "DNS:other.test");
});
afterAll(() => rm(dir, { recursive: true, force: true }));

test.each(["HTTP_PROXY", "http_proxy"])(
  "%s -> an http server is reached through the proxy",
  async (variable) => {
    const server = await serve(answerWell);
    const proxy = await startProxy();
    // Only the proxy knows this name.
    const url = server.url.replace("127.0.0.1", "mcp.test");
    expect(await connectInWorker(url, { [variable]: `http://${proxy.host}` })).toEqual({ tools: ["echo"] });
    expect(proxy.log).toContain(`POST ${url}`);
  },
);

test.each(["HTTPS_PROXY", "https_proxy"])(
  "%s -> an https server is reached through the proxy's tunnel",
  async (variable) => {
    const server = await serve(answerWell, tls);
    const proxy = await startProxy();
    const url = server.url.replace("127.0.0.1", "mcp.test");
    const env = { [variable]: `http://${proxy.host}`, NODE_EXTRA_CA_CERTS: authority() };
    expect(await connectInWorker(url, env)).toEqual({ tools: ["echo"] });
    expect(proxy.log).toContain(`CONNECT ${new URL(url).host}`);
    expect(proxy.log.some((line) => line.startsWith("POST"))).toBe(false);
  },
);

test("NO_PROXY names the host -> the server is reached directly", async () => {
  const server = await serve(answerWell);
  const proxy = await startProxy();
  const env = { HTTP_PROXY: `http://${proxy.host}`, NO_PROXY: "a.test,127.0.0.1" };
  expect(await connectInWorker(server.url, env)).toEqual({ tools: ["echo"] });
  expect(proxy.log).toEqual([]);
});

test.each(["http", "https"])(
  "a proxy with name and password, %s -> sent to the proxy only",
  async (scheme) => {
    const server = await serve(answerWell, scheme === "https" ? tls : undefined);
    const proxy = await startProxy({ PROXY_USER: "me:p@ss" });
    const variable = scheme === "https" ? "HTTPS_PROXY" : "HTTP_PROXY";
    const env = { [variable]: `http://me:p%40ss@${proxy.host}`, NODE_EXTRA_CA_CERTS: authority() };
    expect(await connectInWorker(server.url, env)).toEqual({ tools: ["echo"] });
    expect(server.asked.every(({ headers }) => headers["proxy-authorization"] === undefined)).toBe(true);
  },
);

test.each(["http", "https"])(
  "a proxy refuses the password, %s -> the error says so, without the password",
  async (scheme) => {
    const proxy = await startProxy({ PROXY_USER: "me:secret" });
    const variable = scheme === "https" ? "HTTPS_PROXY" : "HTTP_PROXY";
    const url = `${scheme}://mcp.test:1/mcp`;
    const outcome = await connectInWorker(url, { [variable]: `http://you:wrong@${proxy.host}` });
    expect(outcome.message).toMatch(
      /^web: https?:\/\/mcp\.test:1\/mcp could not be reached: the proxy .*answered 407\.$/,
    );
    expect(outcome.remedy).toContain("The proxy wants a name and password");
    expect(JSON.stringify(outcome)).not.toContain("wrong");
  },
);

test("a proxy that does not run -> the error names it without its password", async () => {
  const server = await serve(answerWell);
  await server.close();
  const { host } = new URL(server.url);
  const outcome = await connectInWorker("http://mcp.test/mcp", { HTTP_PROXY: `http://me:secret@${host}` });
  expect(outcome.message).toBe(
    `web: http://mcp.test/mcp could not be reached through the proxy ${host} (ECONNREFUSED).`,
  );
});

test("a proxy variable that is not an http or https URL -> the error names the variable without its value", async () => {
  const outcome = await connectInWorker("http://mcp.test/mcp", { HTTP_PROXY: "socks5://secret:1" });
  expect(outcome.message).toContain("HTTP_PROXY does not hold an http or https URL");
  expect(JSON.stringify(outcome)).not.toContain("secret");
});

test("NODE_EXTRA_CA_CERTS names the authority -> its server's certificate is trusted", async () => {
  const server = await serve(answerWell, tls);
  expect(await connectInWorker(server.url, { NODE_EXTRA_CA_CERTS: authority() })).toEqual({
    tools: ["echo"],
  });
});

test("NODE_EXTRA_CA_CERTS beside the authority of a caFile -> both are trusted", async () => {
  const file = join(fixtures, "localhost.pem");
  const own = {
    key: await readFile(join(fixtures, "localhost.key"), "utf8"),
    cert: await readFile(file, "utf8"),
  };
  for (const each of [tls, own]) {
    const server = await serve(answerWell, each);
    const env = { NODE_EXTRA_CA_CERTS: authority() };
    expect(await connectInWorker(server.url, env, [own.cert])).toEqual({ tools: ["echo"] });
  }
});

test("no NODE_EXTRA_CA_CERTS -> the certificate is not trusted, and the error says what to do", async () => {
  const server = await serve(answerWell, tls);
  const outcome = await connectInWorker(server.url, {});
  expect(outcome.code).toBe("connect_failed");
  expect(outcome.message).toContain("its certificate comes from an authority that is not known here");
  expect(outcome.remedy).toContain("NODE_EXTRA_CA_CERTS");
  expect(server.asked).toEqual([]);
});

test("a certificate for another host name -> the error says so", async () => {
  const server = await serve(answerWell, otherName);
  const outcome = await connectInWorker(server.url, { NODE_EXTRA_CA_CERTS: authority() });
  expect(outcome.message).toContain(
    "its certificate is for another host name (ERR_TLS_CERT_ALTNAME_INVALID)",
  );
});

test("a plain request to a TLS server -> the probe finds that the server speaks TLS", async () => {
  const server = await serve(answerWell, tls);
  const outcome = await connectInWorker(server.url.replace("https:", "http:"), {});
  expect(outcome.message).toContain("it speaks TLS, so the url must begin with https://");
});
