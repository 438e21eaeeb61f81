import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { parseChallenge } from "../../../../../../workers/connection/auth/auth.ts";
import { TooLarge } from "../../../../../../workers/connection/messages/too-large.ts";
import { createRedactor } from "../../../../../../workers/connection/secrets/redact.ts";
import { textOfAnswer } from "../../../../../../workers/connection/transports/http/exchange.ts";
import {
  AnswerError,
  BrokenAnswer,
  classifyFailure,
  describeConnect,
  explainConnect,
  explainRequest,
  type HttpAddress,
  type HttpFailure,
  parseRetryAfter,
  retryDelay,
} from "../../../../../../workers/connection/transports/http/failure.ts";
import { chooseProbe, isWrongEra } from "../../../../../../workers/connection/transports/http/http.ts";
import { ProxyError, proxyFor } from "../../../../../../workers/connection/web/client.ts";

const coded = (code: string, message = "failed"): Error => Object.assign(new Error(message), { code });
/** An error of OpenSSL as Node writes it. */
const openssl = (words: string, more = ""): string =>
  `40ED279F597F0000:error:0A00042E:SSL routines:ssl3_read_bytes:${words}:../deps/openssl/openssl/ssl/record/rec_layer_s3.c:918:${more}\n`;
const alert = (words: string, nth: number): string => openssl(words, `SSL alert number ${nth}`);
const answer = (status: number, headers = {}, more = {}): AnswerError =>
  new AnswerError({ status, headers, ...more });
const HTML = { "content-type": "text/html; charset=utf-8" };
const SESSION = { sessionId: "s-1" };
const NO_SESSION = { text: "Bad Request: No valid session ID provided" };
const NOT_INITIALIZED = { text: "Bad Request: Server not initialized" };

test.each<[string, unknown, HttpFailure["kind"]]>([
  ["404", answer(404), "refuses-streamable"],
  ["404 as a web page", answer(404, HTML), "refuses-streamable"],
  ["405", answer(405), "refuses-streamable"],
  ["406", answer(406), "refuses-streamable"],
  ["415", answer(415), "refuses-streamable"],
  ["400", answer(400), "rejected"],
  ["400 as a web page", answer(400, HTML), "web-page"],
  ["404 within a session", answer(404, {}, SESSION), "session-lost"],
  ["400 within a session that names it", answer(400, {}, { ...SESSION, ...NO_SESSION }), "session-lost"],
  [
    "400 within a session by a server without a handshake",
    answer(400, {}, { ...SESSION, ...NOT_INITIALIZED }),
    "session-lost",
  ],
  ["400 by such a server where there is none", answer(400, {}, NOT_INITIALIZED), "rejected"],
  ["400 within a session about something else", answer(400, {}, { ...SESSION, text: "bad" }), "rejected"],
  ["400 about a session where there is none", answer(400, {}, NO_SESSION), "rejected"],
  ["405 within a session", answer(405, {}, SESSION), "refuses-streamable"],
  ["401", answer(401), "needs-auth"],
  ["401 within a session", answer(401, {}, SESSION), "needs-auth"],
  ["403", answer(403), "rejected"],
  ["403 with another challenge", answer(403, { "www-authenticate": "Basic realm=x" }), "rejected"],
  [
    "403 for want of scope",
    answer(403, { "www-authenticate": 'Bearer error="insufficient_scope"' }),
    "needs-auth",
  ],
  [
    "403 for an invalid token",
    answer(403, { "www-authenticate": 'Bearer error="invalid_token"' }),
    "needs-auth",
  ],
  ["407", answer(407), "proxy"],
  ["408", answer(408), "busy"],
  ["429", answer(429), "busy"],
  ["500", answer(500), "busy"],
  ["503 as a web page", answer(503, HTML), "busy"],
  ["302 to another server", answer(302, {}, { redirect: new URL("https://login.example/") }), "redirect"],
  ["200 as a web page", answer(200, HTML), "web-page"],
  ["200 as text", answer(200, { "content-type": "text/plain" }), "unusable"],
  ["204", answer(204), "unusable"],
  ["refused", coded("ECONNREFUSED"), "network"],
  ["reset", coded("ECONNRESET"), "network"],
  ["name not found", coded("ENOTFOUND"), "network"],
  ["broken answer", new BrokenAnswer(), "network"],
  ["self-signed certificate", coded("DEPTH_ZERO_SELF_SIGNED_CERT"), "certificate"],
  ["unknown authority", coded("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), "certificate"],
  ["certificate for another name", coded("ERR_TLS_CERT_ALTNAME_INVALID"), "certificate"],
  ["expired certificate", coded("CERT_HAS_EXPIRED"), "certificate"],
  ["plain server at an https URL", coded("ERR_SSL_WRONG_VERSION_NUMBER"), "not-tls"],
  ["the same, while a request is written", coded("EPROTO", openssl("wrong version number")), "not-tls"],
  ["a plain server with a long greeting", coded("EPROTO", openssl("packet length too long")), "not-tls"],
  ["a plain request at the port of TLS", coded("EPROTO", openssl("http request")), "not-tls"],
  ["something else than HTTP", coded("HPE_INVALID_CONSTANT"), "not-http"],
  ["proxy", new ProxyError("the proxy p:1 answered 403", 403), "proxy"],
  ["too large", new TooLarge(5), "too-large"],
  ["aborted", new DOMException("", "AbortError"), "cancelled"],
  ["explained before", new ThreadsError("internal", "x"), "explained"],
  ["any other error", new Error("odd"), "other"],
  ["no error at all", undefined, "other"],
])("classifyFailure: %s -> kind", (_name, error, kind) => {
  expect(classifyFailure(error).kind).toBe(kind);
});

test.each<[string, Error, text: string, isSent: boolean]>([
  [
    "another version",
    coded("EPROTO", `write EPROTO ${alert("tlsv1 alert protocol version", 70)}`),
    "tlsv1 alert protocol version",
    false,
  ],
  [
    "a certificate of the client, after the request",
    coded("ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", alert("tlsv13 alert certificate required", 116)),
    "tlsv13 alert certificate required",
    true,
  ],
  [
    "a short key, which this side refuses",
    coded("EPROTO", openssl("dh key too small")),
    "dh key too small",
    false,
  ],
  [
    "in Bun's words",
    coded("ERR_SSL_NO_CIPHERS", "error:100000f7:SSL routines:OPENSSL_internal:NO_CIPHERS"),
    "no ciphers",
    true,
  ],
  ["without words", coded("EPROTO", "read EPROTO"), "", false],
])("classifyFailure: TLS with %s -> tls-refused with OpenSSL's words alone", (_name, error, text, isSent) => {
  expect(classifyFailure(error)).toEqual({ kind: "tls-refused", text, isSent });
});

test.each([
  [undefined, undefined],
  ["3", 3_000],
  ["Thu, 01 Jan 2026 00:00:10 GMT", 10_000],
  ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
  ["soon", undefined],
  ["", undefined],
  ["-5", 0],
  ["-999999999", undefined],
  ["1e9", undefined],
  ["999999999", LIMITS.longestTimerMs],
  ["9".repeat(400), LIMITS.longestTimerMs],
  ["Fri, 31 Dec 9999 23:59:59 GMT", LIMITS.longestTimerMs],
])("parseRetryAfter(%s) -> %s ms", (value, ms) => {
  expect(parseRetryAfter(value, Date.UTC(2026, 0, 1))).toBe(ms);
});

const busy = (retryAfterMs?: number): HttpFailure => ({ kind: "busy", status: 503, retryAfterMs, text: "" });
test.each<[string, HttpFailure, number, number | undefined]>([
  ["network, first", { kind: "network", code: "ECONNREFUSED" }, 0, 300],
  ["network, second", { kind: "network", code: "ECONNREFUSED" }, 1, 1_000],
  ["network, third", { kind: "network", code: "ECONNREFUSED" }, 2, undefined],
  ["busy", busy(), 0, 300],
  ["busy that asks for 2 s", busy(2_000), 0, 2_000],
  ["busy that asks for nothing", busy(0), 1, 1_000],
  ["busy that asks for a minute", busy(60_000), 0, undefined],
  ["busy that asks for the longest time", busy(LIMITS.longestTimerMs), 0, undefined],
  ["certificate", { kind: "certificate", code: "CERT_HAS_EXPIRED" }, 0, undefined],
  ["sign-in", { kind: "needs-auth", status: 401, challenge: undefined, text: "" }, 0, undefined],
  ["rejected", { kind: "rejected", status: 400, text: "" }, 0, undefined],
])("retryDelay: %s -> ms", (_name, failure, retry, delayMs) => {
  expect(retryDelay(failure, retry)).toBe(delayMs);
});

test("retryDelay with other pauses -> those, and no attempt after the last one", () => {
  expect([0, 1].map((retry) => retryDelay(busy(), retry, [5]))).toEqual([5, undefined]);
});

test.each<[string, unknown]>([
  [
    'Bearer error="a", resource_metadata="https://x.test/a", DPoP algs="ES256", error="b"',
    { scheme: "DPoP", error: "b", resourceMetadata: "https://x.test/a", dpop: "offered" },
  ],
  [
    'DPoP error="b", Bearer error="a", scope="y"',
    { scheme: "DPoP", error: "b", scope: "y", dpop: "offered" },
  ],
  ['Bearer error="a"', { scheme: "Bearer", error: "a" }],
])("parseChallenge(%s) for a token that is bound to a key", (header, challenge) => {
  expect(parseChallenge(header, "dpop")).toEqual(challenge);
});

test.each<[string | undefined, unknown]>([
  [undefined, undefined],
  ["", undefined],
  ["Basic", { scheme: "Basic" }],
  ['Basic realm="a, b"', { scheme: "Basic", realm: "a, b" }],
  [
    'Bearer resource_metadata="https://x.test/.well-known", scope="a b", error=invalid_token, error_description="say \\"hi\\""',
    {
      scheme: "Bearer",
      resourceMetadata: "https://x.test/.well-known",
      scope: "a b",
      error: "invalid_token",
      errorDescription: 'say "hi"',
    },
  ],
  ['Basic realm="x", Bearer scope="y"', { scheme: "Bearer", scope: "y" }],
  ['DPoP algs="ES256"', { scheme: "DPoP", dpop: "required" }],
  ['dpop error="use_dpop_nonce"', { scheme: "dpop", error: "use_dpop_nonce", dpop: "required" }],
  [
    'DPoP algs="ES256", resource_metadata="https://x.test/a", Bearer scope="y"',
    { scheme: "Bearer", scope: "y", resourceMetadata: "https://x.test/a", dpop: "offered" },
  ],
  ['Bearer scope="y", DPoP algs="ES256"', { scheme: "Bearer", scope: "y", dpop: "offered" }],
  ['Basic realm="Bearer, DPoP"', { scheme: "Basic", realm: "Bearer, DPoP" }],
  ['Basic realm="say \\"DPoP\\"", dpop="x"', { scheme: "Basic", realm: 'say "DPoP"' }],
  [
    "Bearer resource_metadata=https://x.test/dpop",
    { scheme: "Bearer", resourceMetadata: "https://x.test/dpop" },
  ],
  ["Basic, dpop=1, x-dpop", { scheme: "Basic" }],
  ["Basic,DPoP", { scheme: "Basic", dpop: "required" }],
  ['DPoP realm="Bearer"', { scheme: "DPoP", realm: "Bearer", dpop: "required" }],
  [`Bearer scope="${"x".repeat(3_000)}"`, { scheme: "Bearer", scope: "x".repeat(3_000) }],
  [`Bearer realm="r", scope="${"x".repeat(5_000)}"`, { scheme: "Bearer", realm: "r" }],
])("parseChallenge(%s)", (header, challenge) => {
  expect(parseChallenge(header)).toEqual(challenge);
});

test.each([
  ["text/html", "<!doctype html><title>Sign in\n here</title>", "Sign in"],
  ["text/html", "<html><pre>Cannot POST /mcp</pre>", "Cannot POST /mcp"],
  ["text/html", "<title>Error</title><body><pre>Cannot GET /x</pre>", "Cannot GET /x"],
  ["application/json", '{"error":{"message":"no session"}}', "no session"],
  ["application/json", '{"error":"invalid_token","error_description":"expired"}', "expired"],
  ["application/problem+json", '{"title":"t","detail":"d"}', "d"],
  ["application/json", '{"error":', ""],
  [
    "application/json",
    '{"code":7,"error":"Missing \\"key\\"\\u001b. Get one", "more": "x',
    'Missing "key"\u001b. Get one',
  ],
  ["application/json", '{"error":"Missing key. Get one! Get o', "Missing key. Get one! Get o"],
  ["application/json", '{"error":"Missing\u0001key. Get', ""],
  ["application/json", '{"error":{"code":1,"message":"no \\', "no"],
  ["text/plain", "first  line\nsecond", "first line"],
  ["image/png", "\u0089PNG", ""],
  [undefined, "", ""],
])("textOfAnswer(%s, %s) -> %s", (type, body, text) => {
  expect(textOfAnswer(type, body)).toBe(text);
});

const at = (url: string, env: Record<string, string>): string | undefined =>
  proxyFor(new URL(url), env)?.host;
const P = { HTTP_PROXY: "http://p:1", HTTPS_PROXY: "http://p:2" };
test.each<[string, string, Record<string, string>, string | undefined]>([
  ["none set", "http://a.test", {}, undefined],
  ["http", "http://a.test", P, "p:1"],
  ["https", "https://a.test", P, "p:2"],
  ["lower case first", "http://a.test", { ...P, http_proxy: "http://q:3" }, "q:3"],
  ["empty is unset", "http://a.test", { http_proxy: "", HTTP_PROXY: "" }, undefined],
  ["without a scheme", "http://a.test", { http_proxy: "p:9" }, "p:9"],
  ["loopback is no exception", "http://127.0.0.1:8080", P, "p:1"],
  ["*", "http://a.test", { ...P, NO_PROXY: "*" }, undefined],
  ["the host", "http://a.test", { ...P, NO_PROXY: "b.test, A.test" }, undefined],
  ["the domain", "http://x.a.test", { ...P, no_proxy: "a.test" }, undefined],
  ["the domain with a dot", "http://x.a.test", { ...P, no_proxy: ".a.test" }, undefined],
  ["the domain with a star", "http://x.a.test", { ...P, no_proxy: "*.a.test" }, undefined],
  ["another that ends alike", "http://xa.test", { ...P, no_proxy: "a.test" }, "p:1"],
  ["the port", "http://a.test:81", { ...P, no_proxy: "a.test:81" }, undefined],
  ["another port", "http://a.test", { ...P, no_proxy: "a.test:81" }, "p:1"],
  ["the default port", "https://a.test", { ...P, no_proxy: "a.test:443" }, undefined],
  ["IPv6", "http://[::1]:8080", { ...P, no_proxy: "[::1]" }, undefined],
  ["IPv6 without brackets", "http://[::1]:8080", { ...P, no_proxy: "localhost,::1" }, undefined],
  ["IPv6 in another notation", "https://[fd00::5]", { ...P, no_proxy: "FD00:0:0::0:5" }, undefined],
  ["IPv6 in another notation, in brackets", "http://[::1]", { ...P, no_proxy: "[0:0::1]" }, undefined],
  ["IPv6 with its port", "http://[::1]:8080", { ...P, no_proxy: "[::1]:8080" }, undefined],
  ["IPv6 with another port", "http://[::1]:8081", { ...P, no_proxy: "[::1]:8080" }, "p:1"],
  ["another IPv6 address", "http://[fd00::5]", { ...P, no_proxy: "fd00::6,[::5],fe80::1%eth0,[::" }, "p:1"],
  ["an address with a port that looks like IPv6", "http://a.test:1", { ...P, no_proxy: "::1" }, "p:1"],
])("proxyFor: %s", (_name, url, env, host) => {
  expect(at(url, env)).toBe(host);
});

test.each(["socks5://p:1", "http://", "::"])(
  "proxyFor: %s -> refused, and not shown in the error",
  (value) => {
    expect(() => at("http://a.test", { HTTP_PROXY: value })).toThrow(
      "HTTP_PROXY does not hold an http or https URL",
    );
  },
);

test.each<[string, HttpFailure, string, string | undefined]>([
  ["reset on http", { kind: "network", code: "ECONNRESET" }, "http://a.test:8443/", "https://a.test:8443/"],
  ["reset on https", { kind: "network", code: "ECONNRESET" }, "https://a.test/", undefined],
  ["refused", { kind: "network", code: "ECONNREFUSED" }, "http://a.test/", undefined],
  ["not HTTP", { kind: "not-http" }, "http://a.test/", "https://a.test/"],
  ["400 without a word", { kind: "rejected", status: 400, text: "" }, "http://a.test/", "http://a.test/"],
  ["400 that says why", { kind: "rejected", status: 400, text: "why" }, "http://a.test/", undefined],
  [
    "sign-in",
    { kind: "needs-auth", status: 401, challenge: undefined, text: "" },
    "http://a.test/",
    undefined,
  ],
])("chooseProbe: %s -> address", (_name, failure, url, address) => {
  expect(chooseProbe(failure, new URL(url))?.url.href).toBe(address);
});

const SECRET = "s3cr3t-of-the-test";

function address(more: Partial<HttpAddress> = {}): HttpAddress {
  return {
    server: "web",
    url: new URL("http://a.test/mcp?key=1"),
    proxy: undefined,
    credentials: [],
    keyPlace: "/home/u/mcp.json",
    redact: createRedactor({ values: [SECRET], named: ["9000"] }),
    ...more,
  };
}

const onCall = (failure: HttpFailure, at = address()) =>
  explainRequest(failure, { method: "tools/call", call: "echo" }, at);

const to = (href: string, status = 307): HttpFailure => ({ kind: "redirect", status, to: new URL(href) });

/** `URL` stands for the address. */
const SENTENCES: [string, HttpFailure, connect: string, call: string][] = [
  [
    "401",
    { kind: "needs-auth", status: 401, challenge: undefined, text: "no key" },
    "URL answered 401: no key.",
    "was refused: URL answered 401: no key.",
  ],
  [
    "400",
    { kind: "rejected", status: 400, text: "" },
    "URL answered status 400.",
    "was refused: URL answered status 400.",
  ],
  [
    "405",
    { kind: "refuses-streamable", status: 405, text: "" },
    "URL answered status 405.",
    "was refused: URL answered status 405.",
  ],
  [
    "503",
    { kind: "busy", status: 503, retryAfterMs: 2_000, text: "later" },
    "URL answered status 503: later and asks to wait 2 s.",
    "failed: URL answered status 503: later and asks to wait 2 s.",
  ],
  [
    "a lost session",
    { kind: "session-lost", isAccepted: false },
    "URL no longer knows the session that it has just opened.",
    "did not run: URL no longer knows this session; it may have been restarted.",
  ],
  [
    "a session that is lost after the request was accepted",
    { kind: "session-lost", isAccepted: true },
    "URL no longer knows the session that it has just opened.",
    "got no answer: URL has forgotten the session of this request; it may have been restarted.",
  ],
  [
    "a connection that breaks",
    { kind: "network", code: "ECONNRESET" },
    "URL closed the connection without an answer (ECONNRESET).",
    "got no answer: URL closed the connection without an answer (ECONNRESET).",
  ],
  [
    "a connection that is refused",
    { kind: "network", code: "ECONNREFUSED" },
    "URL refused the connection (ECONNREFUSED).",
    "did not run: URL refused the connection (ECONNREFUSED).",
  ],
  [
    "a name that is not known",
    { kind: "network", code: "ENOTFOUND" },
    "URL could not be found: no such host name (ENOTFOUND).",
    "did not run: URL could not be found: no such host name (ENOTFOUND).",
  ],
  [
    "the proxy",
    { kind: "proxy", status: 403, message: "the proxy p:1 answered 403" },
    "URL could not be reached: the proxy p:1 answered 403.",
    "did not run: URL could not be reached: the proxy p:1 answered 403.",
  ],
  [
    "a redirect to another server",
    to("https://login.test/x?state=1"),
    "URL redirects to https://login.test/x, which is not followed because that is another server.",
    "got no result: URL redirects to https://login.test/x, which is not followed because that is another server.",
  ],
  [
    "a redirect that would lose the body",
    to("http://a.test/mcp/", 302),
    "URL redirects to http://a.test/mcp/, which is not followed because status 302 would change the request.",
    "got no result: URL redirects to http://a.test/mcp/, which is not followed because status 302 would change the request.",
  ],
  [
    "a redirect that would lose the body, to https",
    to("https://a.test/mcp", 301),
    "URL redirects to https://a.test/mcp, which is not followed because status 301 would change the request.",
    "got no result: URL redirects to https://a.test/mcp, which is not followed because status 301 would change the request.",
  ],
  [
    "redirects in a circle",
    to("http://a.test/mcp", 308),
    "URL redirects to http://a.test/mcp, which is not followed after so many others.",
    "got no result: URL redirects to http://a.test/mcp, which is not followed after so many others.",
  ],
  [
    "a web page",
    { kind: "web-page", status: 200, text: "Shop" },
    "URL is not an MCP server: it answered with a web page (HTML), status 200: Shop.",
    "got no result: URL answered with a web page (HTML), status 200: Shop.",
  ],
  [
    "something else",
    { kind: "unusable", status: 200, contentType: "image/png", text: "" },
    "URL is not an MCP server: it answered with image/png.",
    "got no result: URL answered with image/png.",
  ],
  [
    "something without a type",
    { kind: "unusable", status: 204, contentType: undefined, text: "" },
    "URL is not an MCP server: it answered with no content type.",
    "got no result: URL answered with no content type.",
  ],
  [
    "a message that is too large",
    { kind: "too-large", excess: new TooLarge(8 * 1024 * 1024).excess },
    "URL sent one message of more than 8 MiB.",
    "got no result: URL sent one message of more than 8 MiB.",
  ],
  [
    "headers that are too large",
    { kind: "headers-too-large", limitBytes: 16 * 1024 },
    "URL sent headers of more than 16 KiB.",
    "got no result: URL sent headers of more than 16 KiB.",
  ],
  [
    "a certificate",
    { kind: "certificate", code: "CERT_HAS_EXPIRED" },
    "URL could not be trusted: its certificate has expired (CERT_HAS_EXPIRED).",
    "did not run: URL could not be trusted: its certificate has expired (CERT_HAS_EXPIRED).",
  ],
  ["no TLS", { kind: "not-tls" }, "URL does not speak TLS.", "did not run: URL does not speak TLS."],
  [
    "TLS that is refused",
    { kind: "tls-refused", text: "tlsv1 alert protocol version", isSent: false },
    "URL did not agree to a TLS connection: tlsv1 alert protocol version.",
    "did not run: URL did not agree to a TLS connection: tlsv1 alert protocol version.",
  ],
  [
    "TLS that is refused after the request",
    { kind: "tls-refused", text: "", isSent: true },
    "URL did not agree to a TLS connection.",
    "got no answer: URL did not agree to a TLS connection.",
  ],
  [
    "no HTTP",
    { kind: "not-http" },
    "URL does not speak HTTP.",
    "got no result: URL broke the rules of HTTP.",
  ],
  [
    "a request that cannot be sent",
    { kind: "not-sent", message: "a header is wrong" },
    "URL was not asked: a header is wrong.",
    "did not run: URL was not asked: a header is wrong.",
  ],
  [
    "a request that was given up",
    { kind: "cancelled" },
    "URL did not answer before the request was given up.",
    "got no answer: URL did not answer before the request was given up.",
  ],
  ["anything else", { kind: "other", message: "odd" }, "URL failed: odd.", "got no answer: URL failed: odd."],
];

describe.each(SENTENCES)("%s", (_name, failure, connect, call) => {
  const written = (sentence: string): string => sentence.replace("URL", "http://a.test/mcp");

  test("explainConnect, describeConnect -> who, where, what", () => {
    const error = explainConnect(failure, address());
    expect(error.message).toBe(`web: ${written(connect)}`);
    expect(describeConnect(failure, address())).toBe(written(connect));
    expect(error.remedy).toMatch(/\.$|MCP endpoint|HTTPS_PROXY/);
  });

  test("explainRequest -> how the call ended; a call may only be said not to have run if that is certain", () => {
    const error = onCall(failure);
    expect(error.message).toBe(`web/echo ${written(call)}`);
    expect(error.data?.server).toBe("web");
    const mayHaveRun = error.remedy?.includes("may have run") ?? false;
    expect(mayHaveRun && /did not run|was refused/.test(error.message)).toBe(false);
    expect(error.message).not.toMatch(/got no answer.*(answered|redirects|sent )/);
  });
});

test("explainRequest: a request for a list -> names the method", () => {
  const failure: HttpFailure = { kind: "network", code: "ECONNRESET" };
  const error = explainRequest(failure, { method: "tools/list", call: undefined }, address());
  expect(error).toMatchObject({ code: "connect_failed" });
  expect(error.message).toMatch(/^web: tools\/list got no answer: /);
});

test("403 although a key was sent -> the key's rights are to be checked, and not the url", () => {
  const failure: HttpFailure = { kind: "rejected", status: 403, text: "Forbidden" };
  const sent = { ...address(), credentials: ["bearerToken"], keyPlace: "mcp.json:5" };
  expect(explainConnect(failure, sent)).toMatchObject({
    code: "connect_failed",
    remedy: "Check that the bearerToken of mcp.json:5 may use this server.",
  });
  expect(explainConnect(failure, address({ credentials: [] }))).toMatchObject({
    remedy: expect.stringMatching(/^Check the url/),
  });
});

test("numbers that look like a secret -> stay numbers, and the code stays", () => {
  const failure: HttpFailure = { kind: "busy", status: 503, retryAfterMs: 9_000, text: "limit 9000" };
  expect(explainConnect(failure, address())).toMatchObject({
    code: "connect_failed",
    data: { server: "web", status: 503, retryAfterMs: 9_000 },
  });
  expect(onCall(failure)).toMatchObject({ code: "server_died", data: { retryAfterMs: 9_000 } });
  expect(onCall(failure).message).toContain("limit [redacted]");
});

test("a challenge -> without secrets, each text at most 500 characters, cut only then", () => {
  const text = `${"x".repeat(490)}${SECRET}${"y".repeat(900)}`;
  const challenge = { scheme: "Bearer", scope: text, errorDescription: text };
  const failure: HttpFailure = { kind: "needs-auth", status: 401, challenge, text: "" };
  for (const error of [explainConnect(failure, address()), onCall(failure)]) {
    const shown = error.data?.challenge as Record<string, string>;
    expect(shown.scope).toBe(`${"x".repeat(490)}[redacted]`);
    expect(JSON.stringify([error.message, error.data])).not.toContain("s3c");
    expect(error.message.length).toBeLessThan(300);
  }
});

test("addresses of kilobytes -> cut, without secrets", () => {
  const long = `http://b.test/${"x".repeat(270)}${SECRET}/${"y".repeat(15_000)}`;
  const url = new URL(long);
  for (const error of [explainConnect(to(long), address({ url })), onCall(to(long), address({ url }))]) {
    expect(error.message).not.toContain("s3c");
    expect(error.message.length).toBeLessThan(900);
  }
});

test.each([
  ["ECONNREFUSED", true],
  ["ENOTFOUND", true],
  ["ECONNRESET", false],
  ["ETIMEDOUT", false],
])(
  "%s of a server that was taken for a modern one -> nothing was sent, so another era may be tried: %s",
  (code, isWrong) => {
    expect(isWrongEra(Object.assign(new Error("x"), { code }))).toBe(isWrong);
  },
);
