/** Attacks by servers over HTTP: bodies, streams, headers, redirects and what they ask a client to do again. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Arena } from "../support/arena.ts";
import { type Check, type Entry, type Place, type Row, SERVER_CHECKS } from "../support/row.ts";

/** Without a pause the client asks hundreds of times in this time. */
const WATCH_MS = 500;
const WORK = [{ tool: "work" }];
const SECRET = "t0p-s3cret";

const over =
  (program: string, ...args: string[]) =>
  (place: Place): Promise<Entry> =>
    place.http(program, ...args);

/** With a token that must not go elsewhere. */
const withToken =
  (program: string, ...args: string[]) =>
  async (place: Place): Promise<Entry> => ({
    ...(await place.http(program, ...args)),
    bearerToken: SECRET,
    headers: { "X-Client": SECRET },
  });

const HTTP_CHECKS: readonly Check[] = [...SERVER_CHECKS, "leaves"];

const count = async ({ place }: Arena, what: string): Promise<number> =>
  (await place.seen()).filter((line) => line === what).length;

/** What the user may be told of a server that fails: short, and without secrets. */
const tellsLittle = async (arena: Arena): Promise<string[]> => {
  const status = await arena.status();
  return [
    ...(status.length > 10_000 ? [`/mcp says ${status.length} characters`] : []),
    ...(status.includes(SECRET) ? ["/mcp shows the token"] : []),
    ...(/Unexpected token|is not a function|Cannot read prop/.test(status)
      ? [`/mcp shows a fault of ours: ${status}`]
      : []),
  ];
};

const BODIES: readonly Row[] = [
  {
    name: "tools/list of 60 MiB of empty objects, gzipped to 60 KB",
    finding: "C2",
    alone: true,
    checks: HTTP_CHECKS,
    server: over("floods-gzip.mjs", "tools/list", "60", "{}"),
    happened: "sent",
    act: (arena) => arena.connected(),
  },
  {
    name: "a result of 60 MiB of empty objects, gzipped to 60 KB",
    finding: "C2",
    alone: true,
    checks: HTTP_CHECKS,
    server: over("floods-gzip.mjs", "tools/call", "60", "{}"),
    calls: WORK,
    watchMs: 1_500,
  },
  {
    name: "a gzip stream of zeros without end",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("gzip-bomb.mjs"),
    happened: "sends",
    act: (arena) => arena.connected(),
    check: ({ notices }) =>
      notices
        .map(({ message }) => message)
        .filter((message) => message.includes("worker ended unexpectedly")),
  },
  {
    name: "a body that comes byte by byte for ever",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("slow-body.mjs", "tools/list"),
    happened: "drips",
  },
  ...["line", "lines"].map(
    (kind): Row => ({
      name: `one server-sent event without end, in ${kind === "line" ? "one line" : "many lines"}`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: over("endless-event.mjs", "tools/list", kind),
      happened: "floods",
      act: (arena) => arena.connected(),
    }),
  ),
  {
    name: "a web page without end in answer to everything",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("endless-page.mjs"),
    happened: "floods",
    check: tellsLittle,
  },
  ...["more", "less", "negative", "two", "huge"].map(
    (kind): Row => ({
      name: `a content-length that lies: ${kind}`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: over("false-length.mjs", "tools/list", kind),
      happened: "sent",
    }),
  ),
  {
    name: "a connection that ends in the head of each answer",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("closes-at-once.mjs"),
    happened: "initialize",
    check: tellsLittle,
  },
];

const HEADERS: readonly Row[] = [
  ...["200", "401"].map(
    (status): Row => ({
      name: `a header of 1 MB with status ${status}`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: withToken("big-header.mjs", "initialize", status),
      happened: "sent",
      check: tellsLittle,
    }),
  ),
  {
    name: "a challenge of 14 KB with control bytes that names the canary",
    finding: "own",
    checks: HTTP_CHECKS,
    server: withToken("long-challenge.mjs"),
    happened: "sent",
    check: tellsLittle,
  },
  {
    name: "a session id with CR LF and another header behind it",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("split-session.mjs"),
    calls: WORK,
    check: async ({ place }) =>
      (await place.seen())
        .filter((line) => line === "took the header")
        .map(() => "the client sent the other header"),
  },
  {
    name: "429 with a Retry-After that is the value of one of our headers",
    finding: "L3",
    checks: HTTP_CHECKS,
    server: async (place) => ({ ...(await place.http("limits-told.mjs")), headers: { "X-Limit": "9000" } }),
    happened: "refused",
    check: tellsLittle,
  },
];

const ELSEWHERE: readonly Row[] = [
  {
    name: "redirects to itself for ever",
    finding: "own",
    checks: HTTP_CHECKS,
    server: withToken("redirect-loop.mjs"),
    happened: "initialize",
    act: (arena) => arena.connected(),
    check: async (arena) => {
      const asked = await count(arena, "initialize");
      return asked > 100 ? [`it was asked ${asked} times`] : tellsLittle(arena);
    },
  },
  ...["301", "302", "303", "307", "308"].map(
    (status): Row => ({
      name: `a redirect with ${status} to another origin: no token goes there`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: withToken("redirects-away.mjs", "initialize", status),
      happened: "redirects",
      act: (arena) => arena.connected(),
      check: tellsLittle,
    }),
  ),
  {
    name: "a redirect of a call to another origin: no token goes there",
    finding: "own",
    checks: HTTP_CHECKS,
    server: withToken("redirects-away.mjs", "tools/call", "307"),
    calls: WORK,
  },
  ...["absolute", "double-slash"].map(
    (kind): Row => ({
      name: `legacy SSE whose endpoint is of another origin (${kind})`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: withToken("sse-elsewhere.mjs", kind),
      happened: "stream",
      act: (arena) => arena.connected(),
    }),
  ),
];

const AGAIN: readonly Row[] = [
  ...["0", "-5", "1"].map(
    (retry): Row => ({
      name: `a stream that ends at once with retry: ${retry}: it is not asked for without a pause`,
      anyClient: true,
      finding: "M4",
      checks: HTTP_CHECKS,
      server: over("retry-zero.mjs", retry),
      happened: "stream",
      act: () => sleep(WATCH_MS),
      check: async (arena) => {
        const asked = await count(arena, "stream");
        // One a second, and what the rest of the row takes.
        return asked > 15 ? [`the stream was asked for ${asked} times`] : [];
      },
    }),
  ),
  {
    name: "an answer that always ends before its end, to be resumed without a pause",
    finding: "M4",
    checks: HTTP_CHECKS,
    server: over("retry-zero-answer.mjs"),
    act: async (arena) => {
      // The call itself may take its whole time; what counts is how often the server is asked meanwhile.
      const { server } = arena.place;
      const called = arena.use(server, "work").catch(() => undefined);
      const isResumed = async (): Promise<boolean> => (await count(arena, "resumed")) > 0;
      if (!(await arena.until(isResumed))) throw new Error("the answer was never asked for again");
      await sleep(WATCH_MS);
      await arena.rpc.request({ type: "abort" }).catch(() => undefined);
      await called;
    },
    check: async (arena) => {
      const asked = await count(arena, "resumed");
      // Ten a second, and as many for what the row does besides.
      return asked > 40 ? [`the answer was asked for ${asked} times`] : [];
    },
  },
  {
    name: "notifications over the stream without end, and an event id of 1 MB",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("event-flood.mjs"),
    happened: "stream",
    act: () => sleep(1_000),
  },
  {
    name: "legacy SSE whose answers to posts never end: their sockets are closed",
    finding: "L7",
    checks: HTTP_CHECKS,
    server: over("sse-slow-post.mjs"),
    calls: [...WORK, ...WORK, ...WORK],
    act: async (arena) => {
      await arena.until(async () => (await count(arena, "post closed")) >= 3, 15_000);
    },
    check: async (arena) => {
      const left = (await count(arena, "post open")) - (await count(arena, "post closed"));
      return left > 0 ? [`${left} posts are still open`] : [];
    },
  },
];

export const HTTP: readonly Row[] = [...BODIES, ...HEADERS, ...ELSEWHERE, ...AGAIN];
