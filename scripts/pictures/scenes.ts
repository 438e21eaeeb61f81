/**
 * The screens that pictures show: what each home holds, what is typed, and when the screen is the one of the picture.
 * To add one: a scene here, and a page that shows it.
 */
import { join } from "node:path";
import type { ModelScript } from "../../test/support/model.ts";

/** What a scene does with the terminal; a subset of test/support/terminal.ts. */
export interface Stage {
  until(expected: RegExp): Promise<unknown>;
  /** Types the text and presses Enter. */
  prompt(text: string): Promise<unknown>;
  type(text: string): Promise<unknown>;
  press(key: string): Promise<unknown>;
  /** Keeps the screen as it is now: the picture shows it above the last one. */
  keep(): Promise<void>;
}

export interface Scene {
  title: string;
  /** Content of the user's mcp.json; without it there is none. */
  mcp?: Record<string, unknown>;
  /** Files below the home, besides mcp.json, and below the project's folder. */
  homeFiles?: Readonly<Record<string, unknown>>;
  files?: Readonly<Record<string, unknown>>;
  script?: ModelScript;
  /** What runs: Pi, or a shell that finds the command. */
  program?: "pi" | "shell";
  /** Nothing is known of the servers: the very first start. */
  isFirstStart?: true;
  /** Resolves when the screen shows what the picture is of. */
  play(stage: Stage): Promise<unknown>;
  /** The first line of the picture; without it, the first line that is not empty. */
  from?: RegExp;
  /** The line behind its last one; without it, the last line that is not empty is the last. */
  to?: RegExp;
}

/** Servers from npm, found on the PATH as if they were installed. */
const SERVERS = {
  everything: { command: "mcp-server-everything", args: ["stdio"], description: "Examples of all features" },
  filesystem: { command: "mcp-server-filesystem", args: ["."], description: "Files of the project" },
  memory: { command: "mcp-server-memory", description: "What was learned about people and things" },
};
/** A server of the tests that serves the skills of a folder. */
const FIXTURES = join(import.meta.dirname, "..", "..", "test", "fixtures");
const SKILLS = [join(FIXTURES, "servers", "skills.mjs"), join(FIXTURES, "skills")];
const BROKEN = { command: "no-such-program", lifecycle: "eager" };

const calls = (name: string, args: unknown, text = "") => ({ text, toolCalls: [{ name, args }] });

const LINE = /^─+$/;
/** A dialog or the panel, between its lines; the folder of the session stands below. */
const FRAME = { from: LINE, to: /^~\/project/ };

/** Other programs with servers of their own. */
const OTHERS = {
  ".cursor/mcp.json": {
    mcpServers: { ...SERVERS, linear: { url: "https://mcp.linear.app/mcp" } },
  },
  ".claude.json": { mcpServers: { filesystem: SERVERS.filesystem, memory: SERVERS.memory } },
};

const PANEL_SERVERS = {
  mcpServers: { ...SERVERS, everything: { ...SERVERS.everything, lifecycle: "eager" }, broken: BROKEN },
};

async function openPanel(stage: Stage): Promise<void> {
  await stage.until(/broken failed: \/mcp/);
  await stage.prompt("/mcp");
  await stage.until(/broken +failed[\s\S]*everything +connected[\s\S]*esc close/);
}

export const SCENES: Readonly<Record<string, Scene>> = {
  hint: {
    title:
      "The first start without any server: one line says how to add one, and how many servers other programs have.",
    homeFiles: OTHERS,
    isFirstStart: true,
    from: /No MCP server is configured/,
    to: LINE,
    play: (stage) => stage.until(/No MCP server is configured yet[\s\S]*stub-model/),
  },
  known: {
    title: "/mcp add, A well-known server: ten servers with what each is for and what it needs.",
    mcp: { mcpServers: { memory: SERVERS.memory } },
    ...FRAME,
    play: async (stage) => {
      await stage.until(/MCP: \d/);
      await stage.prompt("/mcp add");
      await stage.until(/→ A well-known server/);
      await stage.press("Enter");
      await stage.until(/→ filesystem[\s\S]*sentry[\s\S]*navigate/);
    },
  },
  add: {
    title:
      "/mcp add: what the server would run, its answer to a trial, and the question where it is written.",
    mcp: { mcpServers: { memory: SERVERS.memory } },
    ...FRAME,
    play: async (stage) => {
      await stage.until(/MCP: \d/);
      await stage.prompt("/mcp add filesystem mcp-server-filesystem .");
      await stage.until(/→ Test it[\s\S]*navigate/);
      await stage.press("Enter");
      await stage.until(/answers over stdio[\s\S]*navigate/);
    },
  },
  import: {
    title: "/mcp import: other programs with the number of their servers, and what is done with one of them.",
    homeFiles: OTHERS,
    mcp: { mcpServers: { memory: SERVERS.memory } },
    ...FRAME,
    play: async (stage) => {
      await stage.until(/MCP: \d/);
      await stage.prompt("/mcp import");
      await stage.until(/→ [\s\S]*Cursor: 4 servers[\s\S]*navigate/);
      await stage.keep();
      await stage.press("Enter");
      await stage.until(/Copy some[\s\S]*navigate/);
    },
  },
  session: {
    title:
      "A session of Pi: the model searches for a tool with ToolSearch, which loads it, calls filesystem list_directory, and answers.",
    mcp: { mcpServers: SERVERS },
    script: [
      calls("ToolSearch", { query: "list directory", server: "filesystem", limit: 1 }),
      calls("filesystem__list_directory", { path: "." }),
      { text: "The folder holds README.md and the folder src." },
    ],
    from: /^ ?List the files/,
    play: async (stage) => {
      await stage.until(/MCP: \d/);
      await stage.prompt("List the files here with the filesystem server.");
      await stage.until(/\[DIR\] src[\s\S]*The folder holds README[\s\S]*MCP: 3 servers ready/);
    },
  },
  panel: {
    title:
      "The panel of /mcp: each server with its state, its tools and what they cost; what needs attention comes first.",
    mcp: PANEL_SERVERS,
    ...FRAME,
    play: openPanel,
  },
  find: {
    title: "The search of the panel: what is typed finds servers, tools of all servers, and actions.",
    mcp: PANEL_SERVERS,
    ...FRAME,
    play: async (stage) => {
      await openPanel(stage);
      await stage.type("list dir");
      await stage.until(/Find: list dir▏[\s\S]*list_directory[\s\S]*\nMCP: /);
    },
  },
  try: {
    title: "A tool that is tried in the panel: its arguments before the call, and what the model would read.",
    mcp: PANEL_SERVERS,
    ...FRAME,
    play: async (stage) => {
      await openPanel(stage);
      await stage.type("get sum");
      await stage.until(/→ ○ get-sum[\s\S]*ctrl\+t try it[\s\S]*\nMCP: /);
      await stage.press("C-t");
      await stage.until(/everything, 1 of 2:\s+│ a\b[\s\S]*\nMCP: /);
      await stage.type("4");
      await stage.press("Enter");
      await stage.until(/everything, 2 of 2:\s+│ b\b[\s\S]*\nMCP: /);
      await stage.type("38");
      await stage.press("Enter");
      await stage.until(/→ Call it[\s\S]*a: 4[\s\S]*b: 38[\s\S]*\nMCP: /);
      await stage.keep();
      await stage.press("Enter");
      await stage.until(/get-sum answered[\s\S]*is 42[\s\S]*\nMCP: /);
    },
  },
  consent: {
    title:
      "A project wants to run a server: the question shows its program, arguments, variables and address, and begins with Not now.",
    mcp: { mcpServers: { memory: SERVERS.memory } },
    files: {
      ".mcp.json": {
        mcpServers: {
          tickets: {
            command: "node",
            args: ["tools/tickets.mjs"],
            env: { TICKETS_TOKEN: "\u0024{TICKETS_TOKEN}" },
          },
        },
      },
      "tools/tickets.mjs": "// A server of the project.\n",
    },
    ...FRAME,
    play: (stage) => stage.until(/This project wants to run[\s\S]*→ Not now[\s\S]*\n~\/project/),
  },
  approval: {
    title: "A call that needs your yes: server, tool and arguments, and four answers.",
    mcp: { mcpServers: { filesystem: { ...SERVERS.filesystem, approve: "destructive", directTools: true } } },
    script: [calls("filesystem__write_file", { path: "notes.md", content: "Release on Friday." })],
    ...FRAME,
    play: async (stage) => {
      await stage.until(/MCP: \d/);
      await stage.prompt("Note that the release is on Friday.");
      await stage.until(/→ Allow once[\s\S]*\n~\/project/);
    },
  },
  skill: {
    title: "A skill of a server that the model wants to load: its description, its files, and three answers.",
    mcp: { mcpServers: { docs: { command: process.execPath, args: SKILLS, lifecycle: "eager" } } },
    script: [calls("ToolSearch", { query: "select:docs__skill_pdf_processing" })],
    ...FRAME,
    play: async (stage) => {
      await stage.until(/MCP: \d/);
      await stage.prompt("Fill the form with last month's figures.");
      await stage.until(/→ No[\s\S]*until it changes[\s\S]*\n~\/project/);
    },
  },
  doctor: {
    title: "/mcp doctor: what is wrong with which server, and what to do about it.",
    mcp: {
      mcpServers: {
        ...SERVERS,
        broken: BROKEN,
        tickets: { ...SERVERS.memory, env: { TICKETS_TOKEN: "\u0024{TICKETS_TOKEN}" } },
      },
    },
    from: /^ ?MCP doctor/,
    to: LINE,
    play: async (stage) => {
      await stage.until(/MCP: \d.*\/mcp/);
      await stage.prompt("/mcp doctor");
      await stage.until(/mcp-doctor\.md[\s\S]*stub-model/);
    },
  },
  shell: {
    title: "The same servers in a shell: list, search, and a call with its result.",
    program: "shell",
    mcp: { mcpServers: { ...SERVERS, broken: { command: "no-such-program" } } },
    play: async (stage) => {
      await stage.until(/\$/);
      await stage.prompt("pi-mcp-threads list");
      await stage.until(/memory[\s\S]*\n\$\s*$/);
      await stage.prompt("pi-mcp-threads search add two numbers --limit 2");
      await stage.until(/get-sum[\s\S]*\n\$\s*$/);
      await stage.prompt("pi-mcp-threads call everything get-sum a=4 b=38");
      await stage.until(/is 42[\s\S]*\n\$\s*$/);
    },
  },
};
