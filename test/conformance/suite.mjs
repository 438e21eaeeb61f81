// The conformance suite as a process that runs its command line again and again: what the suite imports is loaded once,
// for all versions. Each message `{suite, args}` is one run of the version whose file is `suite`, answered with its exit
// code and what it printed: `{code, printed}`. One run at a time.
import { pathToFileURL } from "node:url";

let runs = 0;
let end = () => undefined;
let printed = [];
for (const name of ["log", "error", "warn"]) console[name] = (...words) => printed.push(words.join(" "));

// The suite ends its process after a run. Its first word counts, as it would for a process.
process.exit = (code) => end(code ?? 0);

process.on("message", async ({ suite, args }) => {
  printed = [];
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  process.argv = [process.argv[0], process.argv[1], ...args];
  try {
    // The file reads the command line when it is evaluated; the address with another query is another module.
    await import(`${pathToFileURL(suite).href}?run=${++runs}`);
    if (args[0] === "list") end(0);
  } catch (error) {
    printed.push(String(error));
    end(1);
  }
  process.send({ code: await ended, printed: printed.join("\n") });
});
