import { expect, test } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import { parseChallenge } from "../../../../../../workers/connection/auth/auth.ts";
import { TooLarge } from "../../../../../../workers/connection/messages/too-large.ts";
import { textOfAnswer } from "../../../../../../workers/connection/transports/http/exchange.ts";
import {
  AnswerError,
  BrokenAnswer,
  classifyFailure,
  type HttpFailure,
  parseRetryAfter,
} from "../../../../../../workers/connection/transports/http/failure.ts";
import { chooseProbe, retryDelay } from "../../../../../../workers/connection/transports/http/http.ts";
import { ProxyError, proxyFor } from "../../../../../../workers/connection/web/client.ts";

const coded = (code: string): Error => Object.assign(new Error("failed"), { code });
const answer = (status: number, headers = {}, more = {}): AnswerError =>
  new AnswerError({ status, headers, ...more });
const HTML = { "content-type": "text/html; charset=utf-8" };
const SESSION = { sessionId: "s-1" };
const NO_SESSION = { text: "Bad Request: No valid session ID provided" };

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

test.each([
  [undefined, undefined],
  ["3", 3_000],
  ["Thu, 01 Jan 2026 00:00:10 GMT", 10_000],
  ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
  ["soon", undefined],
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
  ["certificate", { kind: "certificate", code: "CERT_HAS_EXPIRED" }, 0, undefined],
  ["sign-in", { kind: "needs-auth", status: 401, challenge: undefined, text: "" }, 0, undefined],
  ["rejected", { kind: "rejected", status: 400, text: "" }, 0, undefined],
])("retryDelay: %s -> ms", (_name, failure, retry, delayMs) => {
  expect(retryDelay(failure, retry)).toBe(delayMs);
});

test("retryDelay with other pauses -> those, and no attempt after the last one", () => {
  expect([0, 1].map((retry) => retryDelay(busy(), retry, [5]))).toEqual([5, undefined]);
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
