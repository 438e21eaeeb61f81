/**
 * One run of the command: reads the command line, runs the command, and ends. However it ends (done, a failure, a signal,
 * a closed output, the time of `--timeout`), the worker's session is closed first, and with it every server process.
 */
import manifest from "../../package.json" with { type: "json" };
import { candidates } from "./commands/candidates.ts";
import { loadCommand } from "./commands/commands.ts";
import type { Context } from "./commands/known.ts";
import { Console, writeWhole } from "./console/console.ts";
import { asFailure, EXIT, type ExitCode, Failure, unwritten } from "./console/failure.ts";
import { findPlace, leftOutNote, makeAgentFolder } from "./place/place.ts";
import { ARGUMENT_BYTES } from "./place/read-regular.ts";
import type { CliSession } from "./session/session.ts";
import {
  type CommandLine,
  checkArguments,
  NO_OPTIONS,
  readCommandLine,
  timeoutMs,
  wantsJson,
} from "./words/parse.ts";
import { helpOf, helpText } from "./words/table.ts";

interface Early {
  signal: AbortSignal;
  /** Takes the signals in place of the end. Set by a command that hands them on. */
  taker?: (signal: NodeJS.Signals) => void;
  /** Rejects with the failure that ends the command. */
  failed: Promise<never>;
}

const ALIVE_MS = 60_000;
const HELP_COLUMNS = 100;

const SIGNALS = {
  SIGINT: EXIT.interrupted,
  SIGTERM: EXIT.terminated,
  SIGHUP: EXIT.hangUp,
  SIGQUIT: EXIT.quit,
} as const;

/**
 * Before the first write. A write to a file throws its failure; a pipe or a terminal tells it afterwards: then the answer
 * holds it. The stream itself forgets it, as Node opens stdout again after each error.
 */
function openOutput({ stdout, stderr }: NodeJS.Process): { failure?: Failure } {
  const output: { failure?: Failure } = {};
  writeWhole(stdout, (error) => {
    throw unwritten(error);
  });
  // Notes that nobody can read: the result still counts, and there is no other place for a word about it.
  writeWhole(stderr, () => undefined);
  stderr.on("error", () => undefined);
  stdout.on("error", (error) => {
    output.failure ??= unwritten(error);
  });
  return output;
}

/**
 * A signal, the end of whoever reads stdout, or the end of the time. A second signal ends the process at once.
 * `waitsFor`: what a server waits for when the time is over, or nothing.
 */
function watchForEnd(timeout: number | undefined, waitsFor: () => string): Early {
  const controller = new AbortController();
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => undefined);
  const end = (failure: Failure): void => {
    reject(failure);
    controller.abort();
  };
  const early: Early = { signal: controller.signal, failed };
  for (const [signal, code] of Object.entries(SIGNALS)) {
    process.on(signal, () => {
      if (early.taker) return early.taker(signal as NodeJS.Signals);
      // The exit hook of the runtime kills what still runs.
      if (controller.signal.aborted) process.exit(code);
      end(new Failure(code, "", { code: "cancelled" }));
    });
  }
  process.stdout.on("error", (error) => end(unwritten(error)));
  if (timeout !== undefined) {
    setTimeout(() => {
      const waits = waitsFor();
      const late = `Timed out after ${timeout / 1_000} s (--timeout)`;
      end(new Failure(EXIT.timeout, waits === "" ? `${late}.` : `${late}, waiting for ${waits}.`));
    }, timeout).unref();
  }
  return early;
}

async function readStdin(): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > ARGUMENT_BYTES) return undefined;
  }
  return Buffer.concat(chunks);
}

/** Answers the code of the end. */
function reportFailure(failure: Failure, console: Console): ExitCode {
  const { message, remedy, code, data, exitCode } = failure;
  if (message === "") return exitCode;
  const lines = [`pi-mcp-threads: ${message}`, ...(remedy ? [remedy] : [])].join("\n");
  if (!console.json || exitCode === EXIT.unwritten) {
    console.warn(lines);
    return exitCode;
  }
  try {
    console.document({ error: { code, message, ...(remedy ? { remedy } : {}), ...(data ? { data } : {}) } });
    return exitCode;
  } catch (error) {
    // stdout does not take the error either.
    console.warn(lines);
    return asFailure(error).exitCode;
  }
}

/** What was written reaches its reader before the process ends, or its error is told. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed || stream.writableLength === 0) setImmediate(resolve);
    // The error event follows the callback.
    else stream.write("", () => setImmediate(resolve));
  });

async function run(line: CommandLine, console: Console): Promise<number> {
  const { word, options } = line;
  if (options.version) {
    console.answer({ version: manifest.version }, () => [manifest.version]);
    return EXIT.ok;
  }
  if (word === undefined || options.help) {
    const columns = console.columns ?? HELP_COLUMNS;
    const help = word === undefined ? helpText(columns) : helpOf(word, columns);
    console.answer({ help }, () => [help]);
    return EXIT.ok;
  }
  checkArguments(line);
  let opened: CliSession | undefined;
  const timeout = timeoutMs(options);
  const endsAtMs = timeout === undefined ? undefined : performance.now() + timeout;
  const early = watchForEnd(timeout, () => opened?.waitsFor() ?? "");
  const { signal, failed } = early;
  const { cwd, config, "trust-project": trustProject } = options;
  const found = findPlace({ cwd, config, trustProject, only: options["mcp-servers"] });
  const place =
    line.server === undefined
      ? found
      : (await import("./place/unconfigured.ts")).placeOfUnconfigured(found, line);
  let session: Promise<CliSession> | undefined;
  const context: Context = {
    console,
    place,
    options,
    arguments: line.arguments,
    signal,
    session: (stays) => {
      makeAgentFolder(found.agentDir);
      session ??= import("./session/session.ts").then(({ CliSession }) => {
        opened = new CliSession({ place, console, yes: options.yes, signal, endsAtMs, stays });
        return opened;
      });
      return session;
    },
    stdin: readStdin,
    takeSignals: (taker) => {
      early.taker = taker;
    },
  };
  let code: number;
  // A worker that has not been asked anything yet does not keep the process alive.
  const alive = setInterval(() => undefined, ALIVE_MS);
  try {
    const command = await loadCommand(word);
    code = await Promise.race([command(context), failed]);
  } catch (error) {
    // A file that is left out may define the server.
    const note = asFailure(error).code === "unknown_server" ? await leftOutNote(place) : undefined;
    if (note !== undefined) console.note(note);
    if (line.server === undefined) throw error;
    throw (await import("./place/unconfigured.ts")).unconfiguredFailure(error);
  } finally {
    console.progress("");
    clearInterval(alive);
    await (await session?.catch(() => undefined))?.stop();
  }
  return code;
}

export async function main(argv: readonly string[] = process.argv.slice(2)): Promise<void> {
  let options = { ...NO_OPTIONS, json: wantsJson(argv) };
  const { stdin, stdout, stderr, env } = process;
  const output = openOutput(process);
  const consoleOf = (): Console =>
    new Console({
      stdin,
      stdout,
      stderr,
      env,
      json: options.json,
      quiet: options.quiet,
      noColor: options["no-color"],
    });
  let code: number;
  try {
    if (argv[0] === "__complete") {
      const place = findPlace({ trustProject: false });
      const found = candidates(argv[1] ?? "", place);
      consoleOf().lines(
        found.map(({ value, about }) => (about === undefined ? value : `${value}\t${about}`)),
      );
      code = EXIT.ok;
    } else {
      const line = readCommandLine(argv);
      options = line.options;
      code = await run(line, consoleOf());
    }
    await flushed(stdout);
    // A last line into a closed pipe fails after the command is done.
    if (output.failure) throw output.failure;
  } catch (error) {
    const failure = asFailure(error);
    code = reportFailure(failure, consoleOf());
  }
  await Promise.all([flushed(stdout), flushed(stderr)]);
  // Nothing that is still open, such as a terminal that is read, may keep the process alive.
  process.exit(code);
}
