/** `add`, `remove`, `enable` and `disable`: changes of the configuration files, which the worker makes. */

import { serverName } from "../../report/server-name.ts";
import { isOthers, keptTexts, othersText, ownedFileText } from "../../report/setup.ts";
import { IMPORTS } from "../../shared/import-names.ts";
import { parseKnown } from "../../shared/known-servers.ts";
import { wantsKey, withoutServer } from "../../shared/protocol/errors.ts";
import type {
  FoundFile,
  FoundHost,
  FoundImports,
  FoundServer,
  ServerPreview,
  TakenImports,
  TriedServer,
} from "../../shared/protocol/person.ts";
import { ADD_USAGE, type AddWords } from "../../shared/setup.ts";
import { counted, formatMs } from "../../shared/text/amounts.ts";
import { describeProblem } from "../../shared/text/failure.ts";
import { type Console, isYes } from "../console/console.ts";
import { EXIT, Failure, usage } from "../console/failure.ts";
import { didYouMean } from "../words/parse.ts";
import { type Command, type Context, configured } from "./known.ts";

/** Throws for an entry that cannot be written; shows what would run for every other. */
function judge({ line, mistakes, exists, lacksRoom }: ServerPreview, add: AddWords, console: Console): void {
  const [error] = mistakes.filter(({ severity }) => severity === "error");
  const textOf = ({ key, message, remedy }: ServerPreview["mistakes"][number]): string =>
    `${key === "" ? "" : `${key}: `}${message}. ${remedy}`;
  if (error) throw new Failure(EXIT.usage, `${serverName(add.name)}: ${textOf(error)}`);
  if (exists && !add.replace) {
    throw usage(
      `${serverName(add.name)} is configured already, in ${exists.file}.`,
      "--replace before the name replaces it.",
    );
  }
  if (line !== undefined) console.note(`Runs: ${line}`);
  for (const mistake of mistakes) console.note(textOf(mistake));
  if (lacksRoom)
    console.note(
      "--sandbox before the name would hide your keys and sign-ins from it, here and when it runs.",
    );
}

const KEY = "--bearer-token-env NAME or --header NAME=value, before the name, gives it a key.";

function checkTried(tried: TriedServer, add: AddWords, console: Console): void {
  const name = serverName(add.name);
  if (tried.outcome === "failed") {
    const { message } = tried.error;
    // No file has its entry yet.
    const remedy = wantsKey(tried.error) ? KEY : tried.error.remedy;
    throw new Failure(EXIT.unreachable, `${name} is not added: ${withoutServer(add.name, message)}`, {
      remedy: [remedy, "--no-test before the name adds it anyway."].filter(Boolean).join(" "),
    });
  }
  if (tried.outcome === "needs-sign-in") console.note(`It wants a sign-in: pi-mcp-threads login ${name}`);
  else console.note(`It connects: ${counted(tried.toolCount, "tool")}, in ${formatMs(tried.tookMs)}.`);
}

export const add: Command = async (context) => {
  const { console, options, signal } = context;
  const parsed = parseKnown(context.arguments);
  if ("problem" in parsed) throw usage(parsed.problem, `Usage: ${ADD_USAGE.split("\n").join("\n  ")}`);
  const { name, entry, project, replace } = parsed.add;
  const session = await context.session();
  await session.planned();
  const { runtime } = session;
  const proposed = { name, entry, project };
  judge(await runtime.ask("previewServer", proposed), parsed.add, console);
  if (!options["no-test"]) checkTried(await runtime.ask("tryServer", proposed, signal), parsed.add, console);
  const { file, but } = await runtime.ask("addServer", { ...proposed, ...(replace ? { replace } : {}) });
  console.answer({ server: name, file, ...(but ? { but } : {}) }, () => [
    `${serverName(name)} is added to ${file}.`,
  ]);
  if (but) console.warn(but);
  return EXIT.ok;
};

export const remove: Command = async (context) => {
  const { console } = context;
  const { session, server } = await configured(context, context.arguments[0] ?? "", "exact");
  const { file, also = [], still, kept } = await session.runtime.ask("removeServer", { server });
  const document = { server, file, also, ...(still ? { still } : {}), ...(kept ? { kept } : {}) };
  console.answer(document, () => [`${serverName(server)} is removed from ${[file, ...also].join(" and ")}.`]);
  if (still) console.warn(`${serverName(server)} of ${still.file} counts now.`);
  for (const text of keptTexts(kept)) console.warn(text);
  return EXIT.ok;
};

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
  ...files.flatMap((file) => [
    `  ${ownedFileText(file)}`,
    ...file.servers.map(serverLine),
    ...(file.more > 0 ? [`    and ${file.more} more`] : []),
  ]),
];

function chosenHosts({ hosts }: FoundImports, names: readonly string[]): FoundHost[] {
  return names.map((name) => {
    const found = hosts.find(({ host }) => host === name);
    if (found) return found;
    const known = hosts.map(({ host }) => host);
    throw usage(
      `No file of a program ${serverName(name)} is found.${didYouMean(name, IMPORTS)}`,
      `Known programs: ${IMPORTS.join(", ")}. Found here: ${known.join(", ") || "none"}.`,
    );
  });
}

/** Copies run what a file of another program says, and somebody else may have written it. */
async function confirm(
  { console, options, signal }: Context,
  servers: readonly FoundServer[],
): Promise<void> {
  console.warn(["These servers would be written into mcp.json:", ...servers.map(serverLine)].join("\n"));
  const names = servers.filter(({ lacksRoom }) => lacksRoom).map(({ name }) => serverName(name));
  if (names.length > 0) {
    const would = options.sandbox ? "hides" : "would hide";
    console.note(`--sandbox ${would} your keys and sign-ins from those of registries: ${names.join(", ")}.`);
  }
  if (options.yes) return;
  if (!console.canAsk) {
    throw new Failure(EXIT.consent, "No one can be asked here.", {
      remedy: "Run it in a terminal, or add --yes.",
    });
  }
  if (!isYes(await console.ask("Write them? [y/N] ", signal))) {
    throw new Failure(EXIT.consent, "Nothing is written.");
  }
}

interface Wanted {
  server: FoundServer;
  file: FoundFile;
}

/**
 * Those of files that others may have written: each is asked for by itself, which no `--yes` answers beforehand. Without a person
 * none is taken.
 */
async function confirmOthers({ console, signal }: Context, others: readonly Wanted[]) {
  const agreed: FoundServer[] = [];
  const left: TakenImports["left"] = [];
  for (const { server, file } of others) {
    const { name, standing } = server;
    if (!console.canAsk) {
      const reason = `it comes from ${ownedFileText(file)}, which others may have written. Run it in a terminal to be asked.`;
      left.push({ name, reason });
      continue;
    }
    console.warn(othersText(server, file));
    const place = standing === "other" ? " in the place of the one that has its name" : "";
    if (isYes(await console.ask(`Write it${place}? [y/N] `, signal))) agreed.push(server);
    else left.push({ name, reason: "you did not agree." });
  }
  return { agreed, left };
}

/** What is copied. Throws if that is nothing. */
async function confirmed(context: Context, wanted: readonly Wanted[]) {
  const own = wanted.flatMap(({ server, file }) => (isOthers(file) ? [] : [server]));
  if (own.length > 0) await confirm(context, own);
  // The worker copies one server of a name: the user's own.
  const others = wanted.filter(
    ({ server, file }) => isOthers(file) && !own.some(({ name }) => name === server.name),
  );
  const { agreed, left } = await confirmOthers(context, others);
  if (own.length + agreed.length > 0) return { ids: [...own, ...agreed].flatMap(({ id }) => id ?? []), left };
  const why = left.map(({ name, reason }) => `${serverName(name)} is left out: ${reason}`);
  throw new Failure(EXIT.consent, "Nothing is written.", { remedy: why.join("\n") });
}

function report(console: Console, { file, taken, left, notes = [] }: TakenImports): void {
  console.answer({ file, taken, left, ...(notes.length > 0 ? { notes } : {}) }, () =>
    taken.length > 0 ? [`Imported into ${file}: ${taken.map(serverName).join(", ")}.`] : [],
  );
  if (console.json) return;
  for (const note of notes) console.warn(note);
  for (const { name, reason } of left) console.warn(`${serverName(name)} is left out: ${reason}`);
  if (taken.length === 0) console.warn("Nothing was imported.");
}

export const takeOver: Command = async (context) => {
  const { console, options, arguments: names } = context;
  const session = await context.session();
  await session.planned();
  const { ask } = session.runtime;
  const found = await ask("findImports", {});
  if (names.length === 0) {
    if (options.copy || options.replace || options.sandbox)
      throw usage("--copy needs the name of a program.");
    console.answer(found, () => found.hosts.flatMap(hostLines));
    if (found.hosts.length === 0) console.note("No other program on this machine has servers.");
    for (const problem of found.problems) console.note(describeProblem(problem));
    return EXIT.ok;
  }
  if (options.replace && !options.copy) throw usage("--replace is for --copy.");
  if (options.sandbox && !options.copy) throw usage("--sandbox is for --copy.");
  const hosts = chosenHosts(found, names);
  if (!options.copy) {
    report(console, await ask("takeImports", { how: "imports", hosts: hosts.map(({ host }) => host) }));
    return EXIT.ok;
  }
  const replace = options.replace === true;
  const wanted = hosts
    .flatMap(({ files }) => files.flatMap((file) => file.servers.map((server) => ({ server, file }))))
    .filter(
      ({ server: { id, standing } }) => id && (standing === "new" || (standing === "other" && replace)),
    );
  if (wanted.length === 0)
    throw usage("None of its servers can be copied.", "pi-mcp-threads import shows why.");
  const { ids, left } = await confirmed(context, wanted);
  const copied = await ask("takeImports", {
    how: "copy",
    ids,
    ...(replace ? { replace } : {}),
    ...(options.sandbox ? { sandbox: true } : {}),
  });
  report(console, { ...copied, left: [...copied.left, ...left] });
  return EXIT.ok;
};
