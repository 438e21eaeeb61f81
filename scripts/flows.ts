/**
 * Counts and lists the source files through which four flows pass, in the real Pi, by V8's own coverage: a file counts
 * if one of its functions runs between the start and the end of the flow. Docs/architecture.md walks the flows.
 *   call     a call of a connected server's tool, from `execute` to the request in the server's stdin
 *   search   a ToolSearch by words over known tools, from `execute` to the model's next request
 *   edit     an edit of mcp.json, from the write to the notice that the new server's tools are known
 *   sign-in  `/mcp auth`, from the command to the notice that the sign-in is over, with a browser that agrees
 * `npm run flows` prints the counts, `npm run flows -- --files` the files too.
 */
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startAuthorizationServer } from "../test/support/authorization-server.ts";
import { type ModelTurn, startModel } from "../test/support/model.ts";
import { createHome, type PiHome, startRpc } from "../test/support/pi-run.ts";
import { startProtectedServer } from "../test/support/protected-server.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const HOOK = pathToFileURL(join(ROOT, "scripts", "flows", "hook.mjs")).href;
/** Holds each call of a tool right before `execute`. */
const HOLD = join(ROOT, "scripts", "flows", "hold.mjs");
/** Each thread writes its coverage within this time after it was asked. */
const WRITTEN_MS = 1_500;

interface Coverage {
  result: { url: string; functions: { functionName: string; ranges: { count: number }[] }[] }[];
}

/** Files of src and workers of which a function ran, by a coverage file of one thread. */
function ranIn({ result }: Coverage): string[] {
  const ours = result.flatMap(({ url, functions }) => {
    const path = url.startsWith("file:") ? fileURLToPath(url) : url;
    const file = relative(ROOT, path);
    if (!/^(src|workers)\/.*\.ts$/.test(file)) return [];
    // The function without a name is the module itself, which runs when it is loaded.
    const ran = functions.some(
      ({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0,
    );
    return ran ? [file] : [];
  });
  return [...new Set(ours)];
}

interface Home {
  home: PiHome;
  /** Where each thread writes its coverage. */
  folder: string;
}

/** Files in which code ran since the last look, a list for each thread. */
async function createTake({ folder }: Home): Promise<() => Promise<string[][]>> {
  await mkdir(folder);
  let takes = 0;
  return async () => {
    const before = new Set(await readdir(folder));
    await writeFile(join(folder, `take-${++takes}`), "");
    await sleep(WRITTEN_MS);
    const written = (await readdir(folder)).filter((name) => !before.has(name) && name.endsWith(".json"));
    const files = await Promise.all(
      written.map(async (name) => ranIn(JSON.parse(await readFile(join(folder, name), "utf8")) as Coverage)),
    );
    return files.filter((list) => list.length > 0);
  };
}

const fixture = (name: string): string => join(ROOT, "test", "fixtures", name);
const stdio = (name: string) => ({ command: process.execPath, args: [fixture(`servers/${name}.mjs`)] });

/** Waits until the file exists or the check passes. */
async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await check())) await sleep(50);
}

async function measure(at: Home): Promise<Record<string, string[][]>> {
  const { home, folder } = at;
  const trusted = await startAuthorizationServer();
  const guarded = await startProtectedServer({
    issuers: [trusted.issuer],
    check: (token, resource) => trusted.book.check(token, resource),
    challengeScope: "read",
  });
  const settings = { directTools: true };
  const mcpServers = { waits: stdio("waits"), web: { url: guarded.url } };
  await home.writeMcp({ mcpServers, settings });
  const browser = join(home.dir, "browser.mjs");
  await writeFile(
    browser,
    `#!${process.execPath}\nawait import(${JSON.stringify(fixture("oauth/browser.mjs"))});\n`,
  );
  await chmod(browser, 0o755);
  const take = await createTake(at);
  const flows: Record<string, string[][]> = {};
  const [known, arrived, late] = ["known", "arrived", "late"].map((name) => join(home.dir, name));
  await writeFile(known ?? "", "");
  const call = (name: string, args: object): ModelTurn => ({ toolCalls: [{ name, args }] });
  const model = await startModel([
    call("waits__work", { file: known }),
    { text: "warm" },
    call("ToolSearch", { query: "does work" }),
    async () => {
      flows.search = await take();
      return { text: "found" };
    },
    call("waits__work", { file: late, arrived }),
  ]);
  const pi = await startRpc({
    home,
    model,
    extensions: [join(ROOT, "src", "index.ts"), HOLD],
    env: {
      NODE_V8_COVERAGE: folder,
      NODE_OPTIONS: `--import ${HOOK}`,
      FLOWS: folder,
      BROWSER: browser,
      OPENED_FILE: join(home.dir, "opened"),
      BROWSER_AGREES: "1",
    },
  });
  const noticed = (text: RegExp) => pi.waitFor((event) => text.test(String(event.message ?? "")), 60_000);
  /** Sends a prompt whose first call begins with nothing counted. */
  const fromExecute = async (text: string): Promise<() => Promise<unknown>> => {
    const [hold, held] = ["hold", "held"].map((name) => join(folder, name)) as [string, string];
    await writeFile(hold, "");
    const ended = pi.prompt(text);
    await until(() => existsSync(held));
    await take();
    await Promise.all([rm(hold), rm(held)]);
    return () => ended;
  };
  await pi.prompt("warm");
  await (await fromExecute("search"))();
  const called = await fromExecute("call");
  await until(() => existsSync(arrived ?? ""));
  flows.call = await take();
  await writeFile(late ?? "", "");
  await called();
  await take();
  await home.writeMcp({ mcpServers: { ...mcpServers, added: stdio("prompts") }, settings });
  await noticed(/\+ added \(/);
  flows.edit = await take();
  await pi.command("/mcp auth web");
  await noticed(/signed in/i);
  flows["sign-in"] = await take();
  pi.kill("SIGTERM");
  await pi.exited;
  await Promise.all([model.close(), trusted.close(), guarded.close()]);
  return flows;
}

const home = await createHome();
try {
  for (const [name, threads] of Object.entries(await measure({ home, folder: join(home.dir, "coverage") }))) {
    const files = [...new Set(threads.flat())].sort();
    console.log(
      `${name}: ${files.length} files (${threads.map((list) => list.length).join(" + ")} by thread)`,
    );
    if (process.argv.includes("--files")) for (const file of files) console.log(`  ${file}`);
  }
} finally {
  await home.dispose();
}
process.exit();
