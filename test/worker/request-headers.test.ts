/**
 * Owns: a program that signs the requests to a server (`requestHeadersCommand`), with real processes and servers: what it reads,
 * where its headers go and where they do not, its end, and its failures. The example of the documentation is run as it stands.
 */
import { createHash, createHmac } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Asked, answerWell, type Handler, serve, type TestServer } from "../support/http-server.ts";
import { waitGone } from "../support/processes.ts";
import { makeTempFolder } from "../support/temp-folder.ts";
import { fixtures, forRows, root, start, textOf } from "./support.ts";

const KEY = "signing-key-4711";
const SIGNER = join(fixtures, "signing", "signer.mjs");
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

interface Signing {
  server: TestServer;
  entry: Record<string, unknown>;
  /** What the program read, oldest first. */
  read(): Promise<{ version: number; method: string; url: string; bodySha256: string; bodyBase64: string }[]>;
  pids(): Promise<number[]>;
}

/** A server, and an entry for it whose program behaves so. */
async function signing(
  way: string,
  {
    env = {},
    timeoutMs,
    more = {},
    handler = answerWell,
  }: { env?: Record<string, string>; timeoutMs?: number; more?: object; handler?: Handler } = {},
): Promise<Signing> {
  const folder = await makeTempFolder("pmt-sign");
  const [PIDS, READ] = [join(folder, "pids"), join(folder, "read")];
  await Promise.all([writeFile(PIDS, ""), writeFile(READ, "")]);
  const server = await serve(handler);
  const requestHeadersCommand = {
    command: process.execPath,
    args: [SIGNER, way],
    env: { KEY, PIDS, READ, ...env },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  const linesOf = async (file: string) =>
    (await readFile(file, "utf8")).split("\n").filter((line) => line !== "");
  return {
    server,
    entry: { url: server.url, requestHeadersCommand, ...more },
    read: async () => (await linesOf(READ)).map((line) => JSON.parse(line)),
    pids: async () => (await linesOf(PIDS)).map(Number),
  };
}

/** Whether the header is the program's signature of this request. */
const isSigned = (url: string, { http, headers, path }: Asked, body: string): boolean => {
  const text = `${http} ${new URL(url).origin}${path} ${sha256(body)}`;
  return headers["x-signature"] === createHmac("sha256", KEY).update(text).digest("hex");
};

const FAILING: [way: string, how: Parameters<typeof signing>[1], words: RegExp][] = [
  ["never", { timeoutMs: 1_500 }, /requestHeadersCommand took more than 1\.5 s\.$/],
  ["never, with a child", { timeoutMs: 1_500 }, /took more than 1\.5 s\.$/],
  ["endless", {}, /printed more than 64 KiB\.$/],
  ["nothing", {}, /printed nothing\.$/],
  ["fails", {}, /ended with code 7: the clock is wrong \[redacted\]\.$/],
  ["sign", { env: { HEADERS: '{"x-a":"b\\r\\nx-evil: 1"}' } }, /characters that a header cannot hold\.$/],
  ["sign", { env: { HEADERS: '{"Host":"evil.test"}' } }, /belongs to the message itself\.$/],
  [
    "sign",
    {
      env: {
        HEADERS: JSON.stringify(Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`h${i}`, ""]))),
      },
    },
    /printed 61 headers, at most 50/,
  ],
];
/** One session with a server for each test that does not end it. */
const shared = forRows(async () => {
  const other = await serve(answerWell);
  const mine = { Authorization: "Bearer mine", "x-team": "mine", "x-other": "mine" };
  const signings = {
    replaces: await signing("sign", {
      env: { HEADERS: '{"authorization":"AWS4 abc","X-TEAM":"theirs"}' },
      more: { headers: mine },
    }),
    within: await signing("sign", {
      handler: (asked, response) => {
        if (asked.path !== "/moved") response.writeHead(307, { location: "/moved" }).end();
        else answerWell(asked, response);
      },
    }),
    away: await signing("sign", {
      handler: (_asked, response) => void response.writeHead(307, { location: `${other.origin}/mcp` }).end(),
    }),
    guarded: await signing("sign", {
      handler: ({ http }, response) => {
        if (http === "POST") response.writeHead(401, { "www-authenticate": "Bearer" }).end();
        else response.writeHead(404).end();
      },
    }),
    absent: await signing("sign", { more: { requestHeadersCommand: { command: "no-such-signer" } } }),
    leaves: await signing("leaves a child"),
    busy: await signing("sign"),
  };
  const failing = await Promise.all(
    FAILING.map(async ([way, how], i) => [`failing${i}`, await signing(way, how)] as const),
  );
  const servers = [...Object.entries(signings), ...failing].map(([name, { entry }]) => [name, entry]);
  return { ...signings, other, failing, session: await start(Object.fromEntries(servers)) };
});

test("every request of a connection -> it has the signature of its own method, address and body", async () => {
  const { server, entry, read } = await signing("sign", { more: { headers: { "X-Team": "a" } } });
  const session = await start({ web: entry });
  expect(textOf(await session.call("web", "echo", { text: "grüße" }))).toContain("grüße");
  await session.runtime.stop();
  const messages = await read();
  expect(server.asked.length).toBeGreaterThanOrEqual(4);
  // A request that the end of the session overtakes is signed and not sent.
  expect(messages.length).toBeGreaterThanOrEqual(server.asked.length);
  for (const asked of server.asked) {
    const bodies = messages.map(({ bodyBase64 }) => Buffer.from(bodyBase64, "base64").toString("utf8"));
    expect(
      bodies.some((body) => isSigned(server.url, asked, body)),
      asked.http,
    ).toBe(true);
    expect(asked.headers["x-team"]).toBe("a");
  }
  for (const { version, bodySha256, bodyBase64 } of messages) {
    expect(version).toBe(1);
    expect(bodySha256).toBe(createHash("sha256").update(Buffer.from(bodyBase64, "base64")).digest("hex"));
  }
  const call = messages.find(({ bodyBase64 }) => Buffer.from(bodyBase64, "base64").includes("tools/call"));
  expect(call).toMatchObject({ method: "POST", url: server.url });
  // Neither the key nor a signature is in the log.
  const log = await session.log();
  expect(log).not.toContain(KEY);
  for (const { headers } of server.asked) expect(log).not.toContain(String(headers["x-signature"]));
});

test("a header of the program -> it replaces the configured one of that name, also Authorization", async () => {
  const { session, replaces } = await shared();
  await session.call("replaces", "echo", {});
  const sent = replaces.server.asked[0]?.headers;
  expect(sent).toMatchObject({ authorization: "AWS4 abc", "x-team": "theirs", "x-other": "mine" });
});

test("a redirect within the server -> the new address is signed; to another origin -> nothing is signed or sent", async () => {
  const { session, within, away, other } = await shared();
  await session.call("within", "echo", {});
  const urls = (await within.read()).map(({ url }) => url);
  expect(new Set(urls)).toEqual(new Set([within.server.url, `${within.server.origin}/moved`]));
  const error = await session.failedCall("away", "echo");
  expect(error.message).toContain("which is not followed because that is another server");
  expect(other.asked).toEqual([]);
  for (const { url } of await away.read()) expect(url).toBe(away.server.url);
});

test("a server that wants a sign-in -> no request of the sign-in is signed", async () => {
  const { session, guarded } = await shared();
  const { server, read } = guarded;
  await session.failedCall("guarded", "echo");
  const looked = server.asked.filter(({ path }) => path.includes(".well-known"));
  expect(looked.length).toBeGreaterThan(0);
  for (const { headers } of looked) expect(headers["x-signature"]).toBeUndefined();
  for (const { url } of await read()) expect(url).not.toContain(".well-known");
});

test.each(FAILING.map((row, i) => [...row, i] as const))(
  "a program that %s %j -> nothing is sent, the error says why, and no process is left",
  async (_way, _how, words, i) => {
    const { session, failing } = await shared();
    const [name, { server, pids }] = failing[i] ?? expect.unreachable();
    const error = await session.failedCall(name, "echo");
    expect(error).toMatchObject({ code: "bad_config", data: { server: name, reason: "request-headers" } });
    expect(error.message).toMatch(words);
    expect(error.message).not.toContain("\u001b");
    expect(server.asked).toEqual([]);
    expect(await session.log()).not.toContain(KEY);
    const started = await pids();
    expect(started).not.toEqual([]);
    expect(await waitGone(started)).toEqual([]);
  },
);

test("a program that is not there -> the error says so", async () => {
  const { session, absent } = await shared();
  const error = await session.failedCall("absent", "echo");
  expect(error.message).toMatch(/could not be started: the command "no-such-signer" was not found\.$/);
  expect(absent.server.asked).toEqual([]);
});

test("a program that leaves a child -> the request goes out, and the child ends", async () => {
  const { session, leaves } = await shared();
  await session.call("leaves", "echo", {});
  expect(await waitGone(await leaves.pids())).toEqual([]);
});

test("eight calls at a time -> at most four programs run, and all calls are answered", async () => {
  const { session, busy } = await shared();
  await session.call("busy", "echo", {});
  const open = new Set<number>();
  let most = 0;
  const since = session.events.length;
  await Promise.all(Array.from({ length: 8 }, (_, i) => session.call("busy", "echo", { i })));
  for (const event of session.events.slice(since)) {
    if (event.type === "spawned") most = Math.max(most, open.add(event.pid).size);
    if (event.type === "exited") open.delete(event.pid);
  }
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(4);
  expect(busy.server.asked.filter(({ message }) => message.method === "tools/call")).toHaveLength(9);
});

test("a call that is given up while its request is signed -> the program ends at once", async () => {
  const slow = await signing("never", { timeoutMs: 60_000 });
  const other = await start({ slow: slow.entry });
  const given = new AbortController();
  const call = other.call("slow", "echo", {}, given.signal).catch((error: unknown) => error);
  await other.event("spawned");
  given.abort();
  await call;
  await other.runtime.stop();
  expect(await waitGone(await slow.pids())).toEqual([]);
  expect(slow.server.asked).toEqual([]);
});

const AWS = {
  AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
  AWS_SECRET_ACCESS_KEY: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};

/** Checks a signature by the description of AWS (SigV4, "Create a signed AWS API request"), step by step. */
function isSignedForAws({ http, path, headers }: Asked, body: string, host: string): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([\da-f]{64})$/;
  const [, id, day = "", region = "", service = "", names = "", signature] =
    pattern.exec(headers.authorization ?? "") ?? [];
  if (
    id !== AWS.AWS_ACCESS_KEY_ID ||
    headers["x-amz-content-sha256"] !== sha256(body) ||
    headers.host !== host
  )
    return false;
  const [route = "", query = ""] = path.split("?");
  const lines = names.split(";").map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = [
    http,
    route,
    query.split("&").sort().join("&"),
    lines.join(""),
    names,
    sha256(body),
  ].join("\n");
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha256(canonical)].join("\n");
  const hmac = (key: string | Buffer, what: string) => createHmac("sha256", key).update(what).digest();
  let key = hmac(`AWS4${AWS.AWS_SECRET_ACCESS_KEY}`, day);
  for (const part of [region, service, "aws4_request"]) key = hmac(key, part);
  return hmac(key, text).toString("hex") === signature;
}

test("the example of docs/sign-in.md -> a server that checks SigV4 accepts each request", {
  tags: "thorough",
}, async () => {
  const page = await readFile(join(root, "docs", "sign-in.md"), "utf8");
  const [, program = ""] = /<!-- example: sigv4 -->\s+```js\n(.+?)```/s.exec(page) ?? [];
  const folder = await makeTempFolder("pmt-sigv4");
  const file = join(folder, "sigv4.mjs");
  await writeFile(file, program);
  const checking = async (secret: string) => {
    let refused = 0;
    const server = await serve((asked, response) => {
      const body = Object.keys(asked.message).length === 0 ? "" : JSON.stringify(asked.message);
      if (isSignedForAws(asked, body, new URL(server.url).host)) return answerWell(asked, response);
      refused++;
      response.writeHead(403).end('{"message":"The request signature we calculated does not match"}');
    });
    const requestHeadersCommand = {
      command: process.execPath,
      args: [file, "us-east-1", "bedrock-agentcore"],
      env: { ...AWS, AWS_SECRET_ACCESS_KEY: secret },
    };
    return {
      refused: () => refused,
      entry: { url: `${server.url}?b=2&a=x%20y`, requestHeadersCommand },
    };
  };
  const right = await checking(AWS.AWS_SECRET_ACCESS_KEY);
  const wrong = await checking("another");
  const session = await start({ aws: right.entry, wrong: wrong.entry });
  expect(textOf(await session.call("aws", "echo", { a: "1" }))).toContain('"a":"1"');
  expect(right.refused()).toBe(0);
  const error = await session.failedCall("wrong", "echo");
  expect(error.message).toContain("The request signature we calculated does not match");
  expect(error.remedy).toContain("requestHeadersCommand");
});
