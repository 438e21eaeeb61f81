/** `import`: the servers that other programs have configured, and taking them over. */
import { serverName } from "../../report/server-name.ts";
import type { FoundHost, FoundImports, FoundServer, TakenImports } from "../../shared/protocol/setup.ts";
import { describeProblem } from "../../shared/text/failure.ts";
import { type Console, EXIT, Failure, usage } from "../console/console.ts";
import { didYouMean } from "../words/words.ts";
import type { Command, Context } from "./context.ts";

const STANDING: Readonly<Record<FoundServer["standing"], string>> = {
  new: "new",
  same: "configured already",
  other: "another server has this name",
};

const serverLine = ({ name, line, unusable, standing, disabled }: FoundServer): string => {
  const what = unusable === undefined ? (line ?? "") : `cannot be copied: ${unusable}`;
  return `    ${serverName(name)} (${[STANDING[standing], ...(disabled ? ["disabled"] : [])].join(", ")}): ${what}`;
};

const hostLines = ({ host, title, imported, files }: FoundHost): string[] => [
  `${title} (${host})${imported ? ": followed already" : ""}`,
  ...files.flatMap(({ file, servers, more }) => [
    `  ${file}`,
    ...servers.map(serverLine),
    ...(more > 0 ? [`    and ${more} more`] : []),
  ]),
];

function chosenHosts({ hosts }: FoundImports, names: readonly string[]): FoundHost[] {
  return names.map((name) => {
    const found = hosts.find(({ host }) => host === name);
    if (found) return found;
    const known = hosts.map(({ host }) => host);
    throw usage(
      `No file of a program ${serverName(name)} is found.${didYouMean(name, known)}`,
      `Found: ${known.join(", ") || "none"}.`,
    );
  });
}

/** Copies run what a file of another program says, and somebody else may have written it. */
async function confirm(
  { console, options, signal }: Context,
  servers: readonly FoundServer[],
): Promise<void> {
  console.warn(["These servers would be written into mcp.json:", ...servers.map(serverLine)].join("\n"));
  if (options.yes) return;
  if (!console.canAsk) {
    throw new Failure(EXIT.consent, "Nobody can be asked here.", {
      remedy: "Run it in a terminal, or add --yes.",
    });
  }
  const line = await console.ask("Write them? [y/N] ", signal);
  if (!/^y(es)?$/i.test(line?.trim() ?? "")) throw new Failure(EXIT.consent, "Nothing is written.");
}

function report(console: Console, { file, taken, left }: TakenImports): void {
  if (console.json) {
    console.document({ file, taken, left });
    return;
  }
  console.lines(taken.length > 0 ? [`${file} has now: ${taken.map(serverName).join(", ")}.`] : []);
  for (const { name, reason } of left) console.warn(`${serverName(name)} is not taken: ${reason}`);
  if (taken.length === 0) console.warn("Nothing was taken over.");
}

export const takeOver: Command = async (context) => {
  const { console, options } = context;
  const session = await context.session();
  await session.planned();
  const { runtime } = session;
  const found = await runtime.ask("findImports", {});
  const names = context.arguments;
  if (names.length === 0) {
    if (options.copy || options.replace) throw usage("--copy needs the name of a program.");
    if (console.json) console.document(found);
    else console.lines(found.hosts.flatMap(hostLines));
    if (found.hosts.length === 0) console.note("No other program's servers are found.");
    for (const problem of found.problems) console.note(describeProblem(problem));
    return EXIT.ok;
  }
  if (options.replace && !options.copy) throw usage("--replace is for --copy.");
  const hosts = chosenHosts(found, names);
  if (!options.copy) {
    report(
      console,
      await runtime.ask("takeImports", { how: "imports", hosts: hosts.map(({ host }) => host) }),
    );
    return EXIT.ok;
  }
  const wanted = hosts
    .flatMap(({ files }) => files.flatMap(({ servers }) => servers))
    .filter(
      ({ id, standing }) =>
        id !== undefined && (standing === "new" || (standing === "other" && options.replace)),
    );
  if (wanted.length === 0)
    throw usage("There is no server that could be copied.", "pi-mcp-threads import shows why.");
  await confirm(context, wanted);
  const ids = wanted.flatMap(({ id }) => (id === undefined ? [] : [id]));
  const replace = options.replace === true;
  report(console, await runtime.ask("takeImports", { how: "copy", ids, ...(replace ? { replace } : {}) }));
  return EXIT.ok;
};
