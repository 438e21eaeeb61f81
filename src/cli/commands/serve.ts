/**
 * `serve`: the user's servers behind ToolSearch, as one MCP server for another agent. Owns: the life of the process, and the
 * token of HTTP. The token is never in the arguments of a process, never in the log, and no server inherits it. Must not: ask
 * on the terminal, which over stdio belongs to the client.
 */
import { randomBytes } from "node:crypto";
import { rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { SERVE_TOKEN_VARIABLE, SERVING_VARIABLE } from "../../shared/process/serving.ts";
import type { WorkerEvent } from "../../shared/protocol/contract.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { EXIT, Failure, usage } from "../console/failure.ts";
import { leftOutNote } from "../place/place.ts";
import { readRegular } from "../place/read-regular.ts";
import type { HttpEndpoint } from "../serve/endpoint.ts";
import { ServedTools } from "../serve/tools.ts";
import type { Command, Context } from "./known.ts";

/** What a header can hold, and long enough that nobody guesses it. */
const TOKEN = /^[!-~]{32,4096}$/;
const TOKEN_FILE_BYTES = 8 * 1024;
const NOTE_CHARS = 300;

const newToken = (): string => randomBytes(32).toString("base64url");

function checked(token: string, from: string): string {
  if (TOKEN.test(token)) return token;
  throw usage(
    `The token of ${from} cannot be used: it needs at least 32 printable characters without blanks.`,
    "For example: openssl rand -base64 32",
  );
}

/** Made for this user alone if it is not there. Throws a failure if others can read it. */
function tokenOf(file: string): string {
  const token = newToken();
  try {
    writeFileSync(file, `${token}\n`, { mode: 0o600, flag: "wx" });
    return token;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST") throw new Failure(EXIT.configuration, `${file} cannot be written (${code}).`);
  }
  const { mode, uid } = statSync(file);
  if (process.getuid !== undefined && (uid !== process.getuid() || (mode & 0o077) !== 0)) {
    throw new Failure(EXIT.configuration, `${file} is not private: another user owns it or can read it.`, {
      remedy: `chmod 600 ${file}`,
    });
  }
  const read = readRegular(file, TOKEN_FILE_BYTES);
  if (!read || "problem" in read)
    throw new Failure(EXIT.configuration, `${file} ${read?.problem ?? "is gone"}.`);
  return checked(read.bytes.toString("utf8").trim(), file);
}

function portOf(written: string | undefined): number {
  if (written === undefined) return 0;
  const port = /^\d{1,5}$/.test(written) ? Number(written) : Number.NaN;
  if (port >= 1 && port <= 65_535) return port;
  throw usage(`${JSON.stringify(written)} is no port: it is a number from 1 to 65535.`);
}

function check({ options, arguments: given }: Context): void {
  if (process.env[SERVING_VARIABLE] !== undefined) {
    throw new Failure(
      EXIT.configuration,
      "serve runs below another serve, and would start its servers, and itself, without end.",
      {
        remedy:
          'If a file that Pi reads names it, give it "enabled": false in mcp.json. An agent that a server of serve starts has none of its own.',
      },
    );
  }
  if (options.yes)
    throw usage(
      "serve takes no --yes: it would answer for you whatever an agent asks for.",
      'Use "approve" in mcp.json.',
    );
  if (options.json) throw usage("serve takes no --json: its output is the protocol's.");
  if (options.http) return;
  if (given.length > 0) throw usage("serve takes a port with --http only.");
  if (options["token-file"] !== undefined) throw usage("--token-file needs --http.");
}

/** Tells where the token is, and shows it on a terminal alone: whatever else takes stderr may keep it. */
function tellToken(
  { console, place, options }: Context,
  { url, token, fromVariable }: { url: string; token: string; fromVariable: boolean },
): string | undefined {
  const file = options["token-file"];
  if (fromVariable) console.warn(`The token is that of ${SERVE_TOKEN_VARIABLE}.`);
  else if (file !== undefined) console.warn(`The token is in ${String(file)}.`);
  else if (process.stderr.isTTY) console.warn(`Authorization: Bearer ${token}`);
  else {
    const own = join(place.agentDir, `mcp-serve-${new URL(url).port}.token`);
    // One of a process that was killed.
    rmSync(own, { force: true });
    writeFileSync(own, `${token}\n`, { mode: 0o600, flag: "wx" });
    console.warn(`The token is in ${own}, as long as this runs.`);
    return own;
  }
  return undefined;
}

async function overHttp(context: Context, tools: ServedTools, variable: string | undefined): Promise<void> {
  const { console, options, signal, arguments: given } = context;
  const port = portOf(given[0]);
  const file = options["token-file"];
  const token =
    variable !== undefined
      ? checked(variable, SERVE_TOKEN_VARIABLE)
      : typeof file === "string"
        ? tokenOf(resolve(file))
        : newToken();
  const { overHttp: listen } = await import("../serve/endpoint.ts");
  let endpoint: HttpEndpoint;
  try {
    endpoint = await listen(tools, {
      port,
      token,
      onNote: (note) => console.note(oneLine(note, NOTE_CHARS)),
    });
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const why = code === "EADDRINUSE" ? "another program listens there" : code;
    throw new Failure(EXIT.unreachable, `127.0.0.1:${port} cannot be listened at: ${why}.`, {
      remedy: "Name another port, or none for a free one.",
    });
  }
  // A signal that came meanwhile is heard no more: nobody would remove the token's file.
  if (signal.aborted) return endpoint.close();
  const { url } = endpoint;
  console.warn(`Listening at ${url}`);
  const own = tellToken(context, { url, token, fromVariable: variable !== undefined });
  const ended = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => {
    endpoint.close();
    if (own !== undefined) rmSync(own, { force: true });
    ended.resolve();
  });
  await ended.promise;
}

export const serve: Command = async (context) => {
  const { console, options, place } = context;
  check(context);
  const variable = process.env[SERVE_TOKEN_VARIABLE];
  // Before the worker starts, whose programs inherit the environment.
  delete process.env[SERVE_TOKEN_VARIABLE];
  process.env[SERVING_VARIABLE] = "1";
  const note = (text: string): void => console.note(text);
  const tools = new ServedTools(note);
  const session = await context.session({
    answer: (question, signal) => tools.calls.ask(question, signal),
    onEvent: (event: WorkerEvent) => tools.onEvent(event),
  });
  tools.open(session);
  const left = await leftOutNote(place);
  if (left !== undefined) note(left);
  if (options.http) await overHttp(context, tools, variable);
  else {
    const { overStdio } = await import("../serve/endpoint.ts");
    await overStdio(tools, (text) => note(oneLine(text, NOTE_CHARS)));
  }
  return EXIT.ok;
};
