/** Owns: the user of the rows in sign-in.ts, and what must hold after each sign-in. */
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { browse } from "../../support/browser.ts";
import { filesBelow, unlessGone } from "../../support/files-below.ts";
import type { Arena } from "../support/arena.ts";
import { sized } from "./sizes.ts";

/** Every code, token and secret of the attackers begins with this. */
export const SECRET = "t0p-s3cret-of-the-user";
/** A sign-in gives up after 20 s before the browser, and again after it. */
const SIGN_IN_MS = 60_000;
/** Longer sentences are not read. */
export const SENTENCE_CHARS = 700;
const OK = 200;

/**
 * Agrees to everything in the browser and to no question, and cancels if the browser does not get through. `before`:
 * runs once the listener waits. `servers`: all of them at the same time; the row's own if left out.
 */
export async function signIn(
  arena: Arena,
  before?: (redirectUri: string) => Promise<void>,
  servers: readonly string[] = [arena.place.server],
): Promise<void> {
  const open = async (url: string): Promise<void> => {
    await before?.(new URL(url).searchParams.get("redirect_uri") ?? "");
    const page = await browse(url).catch(() => undefined);
    // Esc: the dialog that is still open gets this answer.
    if (page?.status !== OK) arena.rpc.answerUi({ cancelled: true });
  };
  arena.rpc.answerUi(({ method, title }) => {
    // Another device answers.
    if (method === "select" && /enter this code/.test(String(title))) return undefined;
    const [url] = method === "input" ? (/https?:\/\/\S+/.exec(title) ?? []) : [];
    if (url === undefined) return { cancelled: true };
    void open(url);
    return undefined;
  });
  await Promise.all(servers.map((server) => arena.rpc.command(`/mcp auth ${server}`, SIGN_IN_MS)));
  // Pi has closed the dialog: without an answer to it, the next row would begin with its address.
  arena.rpc.answerUi({ cancelled: true });
  arena.rpc.answerUi(() => undefined);
}

const FOREIGN: [path: (own: URL) => string, method: string, host: (own: URL) => string][] = [
  [({ pathname }) => `${pathname}?code=stolen&state=guessed`, "GET", ({ host }) => host],
  [({ pathname }) => `${pathname}?code=stolen&state=guessed`, "GET", ({ port }) => `evil.example:${port}`],
  [({ pathname }) => `${pathname}?state=`, "POST", ({ host }) => host],
  [({ pathname }) => `${pathname}/../other`, "GET", ({ host }) => host],
  [({ pathname }) => `${pathname}?${"x".repeat(20_000)}`, "GET", ({ host }) => host],
  [() => "http://evil.example/callback", "GET", ({ host }) => host],
];
/** More than any one program sends by mistake. */
export const FOREIGN_REQUESTS = sized(200, 2_000);
const AT_A_TIME = 10;

/** What web pages and programs of this machine may send to the listener. Each request ends, however it is answered. */
export async function flooded(redirectUri: string): Promise<void> {
  const own = new URL(redirectUri);
  const send = (nth: number): Promise<void> =>
    new Promise((resolve) => {
      const [path, method, host] = FOREIGN[nth % FOREIGN.length] ?? [];
      const sent = request({
        host: own.hostname,
        port: own.port,
        path: path?.(own),
        method,
        headers: { host: host?.(own) ?? "" },
        agent: false,
      });
      sent.on("response", (response) => response.resume());
      sent.on("error", () => resolve()).on("close", () => resolve());
      sent.end();
    });
  for (let nth = 0; nth < FOREIGN_REQUESTS; nth += AT_A_TIME) {
    await Promise.all(Array.from({ length: AT_A_TIME }, (_, i) => send(nth + i)));
  }
}

/** Files below the home that hold the secret, but for the store of sign-ins. */
export async function leaks({ place }: Arena): Promise<string[]> {
  const { dir } = place.home;
  const paths = (await filesBelow(dir)).filter((path) => !path.includes("mcp-oauth"));
  const found = await Promise.all(
    paths.map(async (path) => {
      const bytes = await unlessGone(readFile(path));
      return bytes?.includes(SECRET) ? [`${path} holds the secret`] : [];
    }),
  );
  return found.flat();
}

/** One sentence at the end of the sign-in, and the secret in no place that anybody reads. */
export const tells =
  (says: RegExp, nameOf = (own: string) => own) =>
  async (arena: Arena): Promise<string[]> => {
    const server = nameOf(arena.place.server);
    const status = await arena.status();
    const messages = arena.notices.map(({ message }) => message);
    const ends = messages.filter((message) => message.startsWith(`${server}: `));
    const [end = ""] = ends;
    const shown = JSON.stringify([messages, arena.dialogs, arena.requests, status]);
    return [
      ...(ends.length === 1 && says.test(end) ? [] : [`the sign-in ends with ${JSON.stringify(ends)}`]),
      ...(end.length > SENTENCE_CHARS ? [`the sentence has ${end.length} characters`] : []),
      ...(shown.includes(SECRET) ? ["Pi shows the secret"] : []),
      ...(await leaks(arena)),
    ];
  };
