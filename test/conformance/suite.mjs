// The conformance suite as a process that runs its command line again and again: what the suite imports is loaded once,
// for all versions. Each message `{suite, args}` is one run of the version whose file is `suite`, answered with its exit
// code and what it printed: `{code, printed}`. One run at a time.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

let loads = 0;
let end = () => undefined;
let printed = [];
for (const name of ["log", "error", "warn"]) console[name] = (...words) => printed.push(words.join(" "));

// The suite ends its process after a run. Its first word counts, as it would for a process.
const { exit } = process;
process.exit = (code) => end(code ?? 0);
// An exit keeps the compiled code for the next process, which the signal alone would not.
process.on("SIGTERM", () => exit.call(process));

/** The suite's command line, which its file would run as soon as it is evaluated. */
async function load(suite) {
  const { Command } = createRequire(suite)("commander");
  const { parse } = Command.prototype;
  let program;
  Command.prototype.parse = function keep() {
    program = this;
    return this;
  };
  try {
    // The address with another query is another module.
    await import(`${pathToFileURL(suite).href}?load=${++loads}`);
  } finally {
    Command.prototype.parse = parse;
  }
  return program;
}

/**
 * What is loaded of each version, with the scenarios that it has run. The suite itself runs different scenarios in one process,
 * but each is one object, which keeps what it has checked: it runs once for each load.
 */
const loaded = new Map();

async function programFor(suite, scenario) {
  const known = loaded.get(suite) ?? [];
  loaded.set(suite, known);
  const fresh = known.find(({ ran }) => !ran.has(scenario)) ?? { program: await load(suite), ran: new Set() };
  if (!known.includes(fresh)) known.push(fresh);
  if (scenario) fresh.ran.add(scenario);
  return fresh.program;
}

process.on("message", async ({ suite, args }) => {
  printed = [];
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  process.argv = [process.argv[0], process.argv[1], ...args];
  try {
    const at = args.indexOf("--scenario");
    const program = await programFor(suite, at < 0 ? undefined : args[at + 1]);
    await program.parseAsync(process.argv);
    if (args[0] === "list") end(0);
  } catch (error) {
    printed.push(String(error));
    end(1);
  }
  process.send({ code: await ended, printed: printed.join("\n") });
});
