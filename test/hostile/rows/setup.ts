/** Attacks while servers are set up: by a server that `/mcp add` tries, and by files that `/mcp import` finds. */
import { mkdir, readFile, truncate } from "node:fs/promises";
import { join } from "node:path";
import { amount } from "../../support/long.ts";
import { processesWithMarker, waitGone } from "../../support/processes.ts";
import type { RpcDialog } from "../../support/rpc-events.ts";
import { removeFolder } from "../../support/temp-folder.ts";
import type { Arena } from "../support/arena.ts";
import { CLONE_CHECKS, type Place, type Row, SERVER_CHECKS } from "../support/row.ts";
import { link, pipe } from "./laying.ts";
import { sized } from "./sizes.ts";

const quoted = (word: unknown): string => `'${String(word).replaceAll("'", `'"'"'`)}'`;

/** The text behind `/mcp` that adds this server. */
function addWords(name: string, { command, args, env }: Record<string, unknown>): string {
  const variables = Object.entries(env as Record<string, string>).flatMap(([key, value]) => [
    "--env",
    quoted(`${key}=${value}`),
  ]);
  return ["add", ...variables, quoted(name), "--", quoted(command), ...(args as string[]).map(quoted)].join(
    " ",
  );
}

interface Tried {
  program: string;
  args?: readonly string[];
  /** The step at which the person cancels; absent: the person waits. */
  until?: string;
  says: RegExp;
}

/** Tries the server, and adds it in no case. */
async function tryIt(arena: Arena, { program, args = [], until }: Tried): Promise<string> {
  const { place, rpc } = arena;
  const words = addWords("tried", place.hostile(program, ...args));
  const isHere = async (): Promise<boolean> => (await place.seen()).includes(until ?? "");
  let isCancelled = false;
  rpc.answerUi(({ title }) => {
    if (title.startsWith("Add tried?")) return { value: "Test it, then add it" };
    if (!title.startsWith("Testing")) return { cancelled: true };
    return undefined;
  });
  const done = arena.status(words);
  if (until !== undefined) {
    isCancelled = await arena.until(isHere, 45_000);
    rpc.answerUi(({ title }) => ({ value: title.startsWith("Testing") ? "Cancel" : "Do not add it" }));
  }
  const told = await done;
  rpc.answerUi(() => undefined);
  if (until !== undefined && !isCancelled) throw new Error(`the server never came to ${until}`);
  return [told, ...arena.dialogs.map(({ title }) => title)].join("\n");
}

/** Nothing of the tried server runs on, and no file has it. A cancelled test is over for the person before its process has ended. */
async function leftOf({ place }: Arena, program: string): Promise<string[]> {
  const tried = (await processesWithMarker(`HOME=${place.home.dir}`)).filter(({ command }) =>
    command.includes(program),
  );
  const left = await waitGone(tried.map(({ pid }) => pid));
  const running = tried.filter(({ pid }) => left.includes(pid));
  const text = await readFile(place.home.mcpFile, "utf8");
  return [
    ...running.map(({ command }) => `still running: ${command.slice(0, 100)}`),
    ...(text.includes("tried") ? ["the server was written"] : []),
  ];
}

/** More values than `LIMITS.messageValues`. */
const LIST_MIB = sized(8, 60);

const TRIED: Record<string, Tried> = {
  "dies at once": { program: "no-such-file.mjs", says: /did not connect/ },
  "floods its stderr": { program: "floods-stderr.mjs", says: /answers over stdio|cancelled/ },
  [`lists ${LIST_MIB} MiB`]: {
    program: "floods-list.mjs",
    args: [`${LIST_MIB}`, "{}"],
    says: /did not connect/,
  },
  "lists pages without end": { program: "endless-pages.mjs", says: /did not connect|answers over stdio/ },
  "answers one byte at a time": { program: "drips.mjs", until: "drips", says: /cancelled/ },
  "writes a line without end": { program: "garbage-without-end.mjs", says: /did not connect/ },
};

const TRIALS: readonly Row[] = Object.entries(TRIED).map(([what, tried]) => {
  let told = "";
  return {
    name: `a server that \`/mcp add\` tries and that ${what}: it ends, and nothing is written`,
    finding: "own",
    checks: SERVER_CHECKS,
    act: async (arena) => {
      told = await tryIt(arena, tried);
    },
    check: async (arena) => [
      ...(tried.says.test(told) ? [] : [`the person read: ${told.slice(0, 300)}`]),
      ...(await leftOf(arena, tried.program)),
    ],
  };
});

const NAME_SAYS = "ok (new): npm\u001b[2J\n[x] 2. safe\u202e\u2028";

/** Turns every page and looks at every server of every program, and chooses none. */
function looker(): (dialog: RpcDialog) => { value: string } | { cancelled: true } {
  const seen = new Set<string>();
  return ({ options = [] }) => {
    const copy = options.find((one) => one.startsWith("Copy some"));
    const next = options.find((one) => one === "Next page");
    if (next) return { value: next };
    if (options.includes("Leave it")) return { value: "Leave it" };
    if (copy && !seen.has("copy")) {
      seen.add("copy");
      return { value: copy };
    }
    const isFirst = options.includes("Done") && !seen.has("program");
    if (isFirst) seen.add("program");
    const row = options.find((one) => one.startsWith("[ ] 1.")) ?? (isFirst ? options[0] : undefined);
    if (row === undefined || seen.has(row)) return { cancelled: true };
    seen.add(row);
    return { value: row };
  };
}

/** Resolves with the dialogs. */
async function look(arena: Arena): Promise<RpcDialog[]> {
  const before = arena.dialogs.length;
  arena.rpc.answerUi(looker());
  await arena.status("import");
  arena.rpc.answerUi(() => undefined);
  return arena.dialogs.slice(before);
}

const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters.
  /[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/;

/** Each choice is one printable line, and the last look found this. */
const dialogProblems = (dialogs: readonly RpcDialog[]): string[] => {
  const options = dialogs.flatMap((dialog) => dialog.options ?? []);
  const wrong = options.find((one) => UNPRINTABLE.test(one) || one.length > 400);
  return [
    ...(options.includes("Leave it") ? [] : ["no server was shown whole"]),
    ...(dialogs.length === 0 ? ["nothing was found"] : []),
    ...(dialogs.length > 200 ? [`there were ${dialogs.length} dialogs`] : []),
    ...(wrong === undefined ? [] : [`a choice is ${JSON.stringify(wrong.slice(0, 200))}`]),
  ];
};

const many = (count: number, entry: (i: number, place: Place) => unknown) => (place: Place) => ({
  mcpServers: Object.fromEntries(Array.from({ length: count }, (_, i) => [`s${i}`, entry(i, place)])),
});
const canary = ({ canaryFile }: Place) => ({ command: "sh", args: ["-c", `echo ran >> ${canaryFile}`] });

const FOUND: Record<string, (place: Place) => unknown> = {
  "5,000 servers": many(5_000, (_i, place) => canary(place)),
  "names that act on a terminal, and names of every object": (place) =>
    `{"mcpServers": {${["__proto__", "constructor", "toString", NAME_SAYS, "x".repeat(10_000), "", " "]
      .map((name) => `${JSON.stringify(name)}: ${JSON.stringify(canary(place))}`)
      .join(",")}}}`,
  "a command that acts on a terminal and is 7,000 characters long": (place) => ({
    mcpServers: {
      evil: {
        command: "sh\u001b[2J\n\u202e",
        args: ["-c", `${" ".repeat(7_000)}echo ran >> ${place.canaryFile}`],
      },
    },
  }),
  "a command of 900 KB": (place) => ({
    mcpServers: { evil: { ...canary(place), env: { A: "x".repeat(900_000) } } },
  }),
};

const FAKES: Record<string, (place: Place, path: string) => Promise<void>> = {
  "a pipe without a writer": pipe,
  "a link to /dev/zero": (place, path) => link("/dev/zero", place, path),
  "a folder": async ({ home }, path) => void (await mkdir(join(home.cwd, path), { recursive: true })),
  "a file of 4 GB": async ({ home }, path) => truncate(await home.writeFile(path, ""), 4 * 2 ** 30),
};
const CURSOR = ".cursor/mcp.json";
const PLACES = [CURSOR, ".vscode/mcp.json", ".codex/config.toml", "opencode.json"];

/** Looks at each content of Cursor's file. Resolves with a text for each problem. */
async function lookAtAll(arena: Arena): Promise<string[]> {
  const { place } = arena;
  const problems: string[] = [];
  for (const [what, content] of Object.entries(FOUND)) {
    await place.home.writeFile(CURSOR, content(place));
    const dialogs = await look(arena);
    problems.push(...dialogProblems(dialogs).map((text) => `${what}: ${text}`));
  }
  return problems;
}

/** Looks while the files of all programs are no files, each another kind; by `shift` places further on. */
async function lookAtFakes(arena: Arena, shift: number): Promise<string[]> {
  const { place } = arena;
  const kinds = Object.values(FAKES);
  for (const [i, path] of PLACES.entries()) {
    await removeFolder(join(place.home.cwd, path));
    await kinds[(i + shift) % kinds.length]?.(place, path);
  }
  const before = arena.notices.length;
  await look(arena);
  const told = arena.notices
    .slice(before)
    .map(({ message }) => message)
    .join("\n");
  return PLACES.filter((path) => !told.includes(path)).map((path) => `${path} was not named: ${told}`);
}

/** One rule reads all files, and each look reads them again: every content comes in the session of one clone. */
const imports = (): Row => {
  let problems: string[] = [];
  return {
    name: `a clone with files of other programs that have ${Object.keys(FOUND).join("; ")}; or are ${Object.keys(FAKES).join(", ")}: \`/mcp import\` shows it or says so, nothing runs, nothing is written`,
    finding: "own",
    alone: "home",
    trusted: true,
    checks: CLONE_CHECKS,
    act: async (arena) => {
      problems = await lookAtAll(arena);
      for (let shift = 0; shift < amount(1, PLACES.length); shift++)
        problems.push(...(await lookAtFakes(arena, shift)));
    },
    check: async ({ place }) => {
      const text = await readFile(place.home.mcpFile, "utf8");
      return [...problems, ...(text.includes("echo ran") ? ["something was written"] : [])];
    },
  };
};

export const SETUP_ROWS: readonly Row[] = [...TRIALS, imports()];
