// One version of the conformance suite as a process that runs its command line again and again: what the suite imports is
// loaded once. The path of the suite is the argument. Each message `{args}` is one run, answered with its exit code and
// what it printed: `{code, printed}`. One run at a time.
import { pathToFileURL } from "node:url";

const suite = pathToFileURL(process.argv[2]).href;
let runs = 0;
let end = () => undefined;
let printed = [];
for (const name of ["log", "error", "warn"]) console[name] = (...words) => printed.push(words.join(" "));

// The suite ends its process after a run. Its first word counts, as it would for a process.
process.exit = (code) => end(code ?? 0);

process.on("message", async ({ args }) => {
  printed = [];
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  process.argv = [process.argv[0], process.argv[1], ...args];
  try {
    // The file reads the command line when it is evaluated; the address with another query is another module.
    await import(`${suite}?run=${++runs}`);
    if (args[0] === "list") end(0);
  } catch (error) {
    printed.push(String(error));
    end(1);
  }
  process.send({ code: await ended, printed: printed.join("\n") });
});
