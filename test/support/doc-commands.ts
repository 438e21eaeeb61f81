/**
 * Owns: the commands that the documentation for users tells people to type, and for each of them the test that runs it, or why
 * none does.
 * Called by: test/boundary/docs.test.ts (a command without a test, a reason without its command), and by the tests named here.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { codeBlocks, codeSpans } from "../boundary/support/markdown.ts";

const root = join(import.meta.dirname, "..", "..");

/** Tests that run all commands of a kind as they stand in the pages, by the start of these. */
const RUN_BY = {
  "test/e2e/docs.test.ts": /^(?:\/mcp|pi -p "|pi mcp (?:add|list)$)/,
  "test/cli/docs.test.ts":
    /^(?:pi-mcp-threads [a-z]|export PATH=|eval "\$\(pi-mcp-threads completion bash|cd ~\/\.pi\/agent && rm )/,
  "test/e2e/install-terminal.test.ts": /^pi (?:install|remove) npm:pi-mcp-threads$/,
} as const;

const NAME = "names a program, and no command to type";
const DEEPWIKI =
  "needs the network; test/cli/pipe.test.ts gives these words the address of a server on loopback";
const NPX = "npm's registry; test/cli/pipe.test.ts gives these words a program of this machine";
const DEVICE = "somebody answers on another device; test/cli/sign-in.test.ts gives the words such a server";
const CHECKOUT = "builds or tests the checkout, and with it these tests";

/** Command -> why no test runs it. Those of `pi-mcp-threads` are read by its own parser (test/boundary/docs.test.ts). */
const NOT_RUN: Readonly<Record<string, string>> = {
  "npx pi-mcp-threads": NAME,
  "pi config": "opens a screen of Pi itself",
  "pi install": NAME,
  "pi mcp": NAME,
  "pi mcp login": NAME,
  "pi mcp login <server>": "is a command of Pi itself, without this package",
  "pi -p": NAME,
  "npm run": NAME,
  "npm run bench": "takes a quarter of an hour",
  "npm run bench -- shared": "takes 40 minutes",
  "npm run bench -- gateway": "takes a quarter of an hour; test/e2e/gateway runs the same gateway",
  "npm run flows -- --files": CHECKOUT,
  "npm run pictures": "writes files of the checkout; test/unit/pictures has its parts",
  "npm install && npm start": CHECKOUT,
  "npm install && npm test": CHECKOUT,
  "docker mcp gateway run --transport streaming --port 8811": "needs Docker, and the network",
  "docker pull ghcr.io/github/github-mcp-server": "needs Docker, and the network",
  "pi-mcp-threads tools https://mcp.deepwiki.com/mcp": DEEPWIKI,
  "pi-mcp-threads call https://mcp.deepwiki.com/mcp read_wiki_structure repoName=facebook/react": DEEPWIKI,
  "pi-mcp-threads tools https://api.githubcopilot.com/mcp/ --bearer-token-env GITHUB_PERSONAL_ACCESS_TOKEN":
    DEEPWIKI,
  "pi-mcp-threads tools -- npx -y @modelcontextprotocol/server-everything": NPX,
  "pi-mcp-threads call -- npx -y @modelcontextprotocol/server-everything -- get-sum a=1 b=2": NPX,
  "pi-mcp-threads serve": "speaks with a client; test/cli/serve.test.ts does",
  "pi-mcp-threads serve --http 8123": "listens until it is ended; test/cli/serve-http.test.ts does",
  "pi-mcp-threads login docs --device": DEVICE,
  "pi-mcp-threads login docs --link": DEVICE,
  'eval "$(pi-mcp-threads completion zsh)"':
    "zsh is not on every machine; test/cli/shells.test.ts runs it where it is",
};

/** Spans that are typed as they stand; other spans name keys, files and words. */
const TYPED =
  /^(?:\/mcp|pi-mcp-threads [a-z]|npx pi-|npm (?:run|start|test|install)\b|docker |pi (?:install|remove|config|mcp|-p)\b)/;

/** The commands of a page: the lines of its shell examples without their comments, and code spans that begin as a command. */
export function commandsOf(page: string): string[] {
  const lines = codeBlocks(page)
    .filter(({ language }) => ["bash", "sh", "text"].includes(language))
    .flatMap(({ language, text }) =>
      text
        .replaceAll(/\\\n\s*/g, "")
        .split("\n")
        .map((line) => line.replace(/ +# .*$/, "").trim())
        // A text may show what is typed into Pi, or what a person says to the model.
        .filter((line) => line !== "" && (language !== "text" || line.startsWith("/"))),
    );
  return [...lines, ...codeSpans(page).filter((span) => TYPED.test(span))];
}

/** All commands of README.md and docs, each once, in the order of the pages. */
export async function docCommands(): Promise<string[]> {
  const names = (await readdir(join(root, "docs"))).filter((name) => name.endsWith(".md")).sort();
  const pages = await Promise.all(
    ["README.md", ...names.map((name) => join("docs", name))].map((path) =>
      readFile(join(root, path), "utf8"),
    ),
  );
  return [...new Set(pages.flatMap(commandsOf))];
}

/** Those that this test file is to run. */
export const commandsFor = async (file: keyof typeof RUN_BY): Promise<string[]> =>
  (await docCommands()).filter((command) => NOT_RUN[command] === undefined && RUN_BY[file].test(command));

/** Commands that no test runs and no reason excuses, and reasons whose command is in no page. */
export function unaccounted(commands: readonly string[]): { notRun: string[]; stale: string[] } {
  const isRun = (command: string): boolean => Object.values(RUN_BY).some((fits) => fits.test(command));
  return {
    notRun: commands.filter((command) => NOT_RUN[command] === undefined && !isRun(command)),
    stale: Object.keys(NOT_RUN).filter((command) => !commands.includes(command)),
  };
}
