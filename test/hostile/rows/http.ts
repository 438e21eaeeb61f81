/** Attacks by servers over HTTP: bodies, streams, headers, redirects and requests to connect again. */
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { family } from "../../support/long.ts";
import type { Arena } from "../support/arena.ts";
import { type Check, type Entry, type Place, type Row, SERVER_CHECKS } from "../support/row.ts";
import { failsForValues, refusesValues } from "./seeing.ts";
import { besideOrHome, sized } from "./sizes.ts";

/** A client without a pause sends hundreds of requests in this time. */
const WATCH_MS = 500;
const WORK = [{ tool: "work" }];
/** More values than `LIMITS.messageValues`. */
const LIST_MIB = sized(6, 60);
/** An event may have 64 MiB, so it takes 64,000 such lines, or 800,000. */
const LINE_CHARS = sized(1_000, 80);
const SECRET = "t0p-s3cret";

const over =
  (program: string, ...args: string[]) =>
  (place: Place): Promise<Entry> =>
    place.http(program, ...args);

/** Returns an entry with a token, which must not go to another origin. */
const withToken =
  (program: string, ...args: string[]) =>
  async (place: Place): Promise<Entry> => ({
    ...(await place.http(program, ...args)),
    bearerToken: SECRET,
    headers: { "X-Client": SECRET },
  });

/** The same for the program that listens at a socket. */
const atSocket =
  (kind: string) =>
  async (place: Place): Promise<Entry> => {
    const { url } = await place.http("socket.mjs", kind);
    const number = /:(\d+)\//.exec(url)?.[1];
    return { socket: join(dirname(place.seenFile), `socket-${number}`) };
  };

const HTTP_CHECKS: readonly Check[] = [...SERVER_CHECKS, "leaves"];

const count = async ({ place }: Arena, what: string): Promise<number> =>
  (await place.seen()).filter((line) => line === what).length;

/** Reports a text of `/mcp` that is long, shows the token, or shows an error of the extension's own code. */
const tellsLittle = async (arena: Arena): Promise<string[]> => {
  const status = await arena.status();
  return [
    ...(status.length > 10_000 ? [`/mcp says ${status.length} characters`] : []),
    ...(status.includes(SECRET) ? ["/mcp shows the token"] : []),
    ...(/Unexpected token|is not a function|Cannot read prop/.test(status)
      ? [`/mcp shows an error of the extension's own code: ${status}`]
      : []),
  ];
};

/** The parser of messages over stdio refuses the same; floods.ts has the attacks on it. */
const VALUES: readonly Row[] = family<Row>([
  {
    name: `a server that answers tools/list with ${LIST_MIB} MiB of empty objects in ${LIST_MIB} KB of gzip`,
    finding: "C2",
    ...besideOrHome,
    checks: HTTP_CHECKS,
    server: over("floods-gzip.mjs", "tools/list", `${LIST_MIB}`, "{}"),
    happened: "sent",
    act: (arena) => arena.connected(),
    check: failsForValues,
  },
  {
    name: `a server that answers a call with ${LIST_MIB} MiB of empty objects in ${LIST_MIB} KB of gzip`,
    finding: "C2",
    ...besideOrHome,
    checks: HTTP_CHECKS,
    server: over("floods-gzip.mjs", "tools/call", `${LIST_MIB}`, "{}"),
    calls: WORK,
    check: refusesValues,
    watchMs: 1_500,
  },
]);

/** The client ends a body or an event that is longer than `LIMITS.messageBytes`. */
const BODIES: readonly Row[] = [
  ...VALUES,
  {
    name: "a server that sends zeros without end in gzip",
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
    name: "a program at a socket that begins a line which never ends",
    finding: "own",
    checks: SERVER_CHECKS,
    server: atSocket("endless"),
    happened: "floods",
    act: (arena) => arena.connected(),
    check: tellsLittle,
  },
  {
    name: "a program at a socket that closes it in each call",
    finding: "own",
    checks: SERVER_CHECKS,
    server: atSocket("gone"),
    calls: [...WORK, ...WORK],
    check: async (arena) => [
      ...(await tellsLittle(arena)),
      ...((await count(arena, "tools/call")) < 2 ? ["a call did not reach the program"] : []),
    ],
  },
  {
    name: "a server that sends a body byte by byte without end",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("slow-body.mjs", "tools/list"),
    happened: "drips",
  },
  ...["lines", "line"].map(
    (kind): Row => ({
      name: `a server that sends one event without end, in ${kind === "line" ? "one line" : "many lines"}`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: over("endless-event.mjs", "tools/list", kind, `${LINE_CHARS}`),
      happened: "floods",
      act: (arena) => arena.connected(),
    }),
  ),
  {
    name: "a server that answers everything with a web page without end",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("endless-page.mjs"),
    happened: "floods",
    check: tellsLittle,
  },
  ...family(["two", "negative", "huge", "more", "less"]).map(
    (kind): Row => ({
      name: `a server whose content-length is wrong: ${kind}`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: over("false-length.mjs", "tools/list", kind),
      happened: "sent",
    }),
  ),
  {
    name: "a server that closes the connection in the head of each answer",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("closes-at-once.mjs"),
    happened: "initialize",
    check: tellsLittle,
  },
];

const HEADERS: readonly Row[] = [
  ...family(["401", "200"]).map(
    (status): Row => ({
      name: `a server that sends a header of 1 MB with status ${status}`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: withToken("big-header.mjs", "initialize", status),
      happened: "sent",
      check: tellsLittle,
    }),
  ),
  {
    name: "a server whose challenge has 14 KB, control bytes and the name of another server",
    finding: "own",
    checks: HTTP_CHECKS,
    server: withToken("long-challenge.mjs"),
    happened: "sent",
    check: tellsLittle,
  },
  {
    name: "a server whose session id holds a line break and another header",
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
    name: "a server that sets 300 cookies with each answer, some of 3 KB and some that no header can hold",
    finding: "own",
    checks: HTTP_CHECKS,
    server: over("cookies.mjs"),
    calls: WORK,
    happened: "cookies came back",
    check: async ({ place }) =>
      (await place.seen())
        .filter((line) => line === "too many" || line === "unfit")
        .map((line) => `the client sent cookies that are ${line}`),
  },
  {
    name: "a server that answers 429 and repeats a header of the client as Retry-After",
    finding: "L3",
    checks: HTTP_CHECKS,
    server: async (place) => ({ ...(await place.http("limits-told.mjs")), headers: { "X-Limit": "9000" } }),
    happened: "refused",
    check: tellsLittle,
  },
];

const ELSEWHERE: readonly Row[] = [
  {
    name: "a server that redirects to itself without end",
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
  ...family(["307", "301", "302", "303", "308"]).map(
    (status): Row => ({
      name: `a server that redirects with ${status} to another origin: no token goes there`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: withToken("redirects-away.mjs", "initialize", status),
      happened: "redirects",
      act: (arena) => arena.connected(),
      check: tellsLittle,
    }),
  ),
  {
    name: "a server that redirects a call to another origin: no token goes there",
    finding: "own",
    checks: HTTP_CHECKS,
    server: withToken("redirects-away.mjs", "tools/call", "307"),
    calls: WORK,
  },
  ...family(["double-slash", "absolute"]).map(
    (kind): Row => ({
      name: `a legacy SSE server that names an endpoint of another origin (${kind})`,
      finding: "own",
      checks: HTTP_CHECKS,
      server: withToken("sse-elsewhere.mjs", kind),
      happened: "stream",
      act: (arena) => arena.connected(),
    }),
  ),
];

const AGAIN: readonly Row[] = [
  ...family(["0", "-5", "1"]).map(
    (retry): Row => ({
      name: `a server that ends its stream at once with retry: ${retry}: the client pauses before it asks again`,
      anyClient: true,
      finding: "M4",
      beside: false,
      checks: HTTP_CHECKS,
      server: over("retry-zero.mjs", retry),
      happened: "stream",
      act: () => sleep(WATCH_MS),
      check: async (arena) => {
        const asked = await count(arena, "stream");
        // The client asks once a second, and a few times more while the rest of the row runs.
        return asked > 15 ? [`the stream was asked for ${asked} times`] : [];
      },
    }),
  ),
  ...family(["31536000", "0", "-1", "Fri, 31 Dec 9999 23:59:59 GMT", "1e99"]).map(
    (retryAfter): Row => ({
      name: `a server that says all the time that its tools change, and refuses its list with Retry-After: ${retryAfter}`,
      finding: "own",
      beside: false,
      checks: HTTP_CHECKS,
      server: over("busy-list.mjs", retryAfter),
      happened: "refused",
      act: async (arena) => {
        const isRefused = async (): Promise<boolean> => (await count(arena, "refused")) > 0;
        if (!(await arena.until(isRefused, 15_000))) throw new Error("the list was never asked for again");
        await sleep(WATCH_MS);
      },
      check: async (arena) => {
        const asked = await count(arena, "refused");
        const { isError, text } = await arena.use(arena.place.server, "work");
        return [
          ...(isError ? [`its known tool does not work any longer: ${text}`] : []),
          // Three attempts for each change that the client asks about, at least a second apart.
          ...(asked > 12 ? [`the list was asked for ${asked} times`] : []),
        ];
      },
    }),
  ),
  {
    name: "a server that ends each answer early with retry: 0: the client pauses before it asks again",
    finding: "M4",
    beside: false,
    checks: HTTP_CHECKS,
    server: over("retry-zero-answer.mjs"),
    act: async (arena) => {
      // The call may last until its timeout; the row counts the requests in that time.
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
      // The client asks ten times a second, and some times more while the rest of the row runs.
      return asked > 40 ? [`the answer was asked for ${asked} times`] : [];
    },
  },
  {
    name: "a server that sends notifications without end, and an event id of 1 MB",
    finding: "own",
    beside: false,
    checks: HTTP_CHECKS,
    server: over("event-flood.mjs"),
    happened: "flooded",
  },
  {
    name: "a legacy SSE server that never ends its answers to posts: the client closes them",
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
