// The conformance suite as a process that runs its command line again and again: the suite and what it imports are loaded
// once, for all versions. Each message `{suite, args}` is one run of the version whose file is `suite`, answered with its
// exit code and what it printed: `{code, printed}`. One run at a time.
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

let end = () => undefined;
let printed = [];
for (const name of ["log", "error", "warn"]) console[name] = (...words) => printed.push(words.join(" "));

// The suite ends its process after a run. Its first word counts, as it would for a process.
const { exit } = process;
process.exit = (code) => end(code ?? 0);
// An exit keeps the compiled code for the next process, which the signal alone would not.
process.on("SIGTERM", () => exit.call(process));

/** The suite runs its command line as the last thing that its file does. Loaded here, the file hands its program out. */
const RUNS = /([\w$]+)\.parse\(\);\s*export\s*\{\s*\};\s*$/;
const files = new Set();
registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context);
    if (!files.has(url)) return loaded;
    const source = new TextDecoder().decode(loaded.source);
    if (!RUNS.test(source)) throw new Error(`${url} does not end with a run of its program`);
    return { ...loaded, source: source.replace(RUNS, "$1; export { $1 as program };") };
  },
});

process.on("message", async ({ suite, args }) => {
  printed = [];
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  try {
    const { href } = pathToFileURL(suite);
    files.add(href);
    const { program } = await import(href);
    program.parse(args, { from: "user" });
    if (args[0] === "list") end(0);
  } catch (error) {
    printed.push(String(error));
    end(1);
  }
  process.send({ code: await ended, printed: printed.join("\n") });
});
