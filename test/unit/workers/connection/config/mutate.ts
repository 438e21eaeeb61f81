/** Owns: configuration files with random mistakes, and the promises that each must keep. */

import { HOSTS } from "../../../../../src/shared/import-names.ts";
import type { ConfigProblem } from "../../../../../src/shared/protocol/session.ts";
import { describeProblem } from "../../../../../src/shared/text/failure.ts";
import { parseConfigText } from "../../../../../workers/connection/config/files/files.ts";
import { hostSources, parseHostText } from "../../../../../workers/connection/config/hosts/hosts.ts";
import { mergeLayers } from "../../../../../workers/connection/config/merge/layers.ts";
import { plan } from "../../../../../workers/connection/config/plan/plan.ts";
import { decideTrust } from "../../../../../workers/connection/config/trust/decide.ts";
import { facts, fixture, PROJECT_FILE, PROJECT_PI, USER } from "./support.ts";

/** A file of our own with every kind of value. */
export const OWN = `{
  // servers of mine
  "$schema": "./mcp.schema.json",
  "mcpServers": {
    "fs": { "command": "npx", "args": ["-y", "server", "."], "env": { "A": "\${B:-c}" }, "lifecycle": "eager", },
    "docs": { "url": "https://docs.example.com/mcp", "headers": { "Authorization": "!get token" }, "timeout": 5 },
    "over": { "enabled": false, "toolExposure": { "get_*": "direct" } },
  },
  "mcp-servers": { "old": { "type": "sse", "url": "https://old.example.com/sse", "auth": "bearer", "bearerToken": "x" } },
  "imports": ["cursor", "codex"],
  "settings": { "toolPrefix": "short", "idleTimeout": 5, "captureStats": { "path": "x" }, "hotReload": "ask" },
}`;

const PIECES = [
  "null",
  "true",
  "0",
  "-1",
  "1e999",
  '""',
  "[]",
  "{}",
  '"x"',
  '"__proto__"',
  '"constructor"',
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "\\",
  "\n",
  "\r\n",
  "\u0000",
  "\uFEFF",
  "\uD800",
  "/*",
  "//",
  "[[[[[[",
  '{"a":{"a":{"a":',
  "=",
  "'",
  '"""',
  "#",
  "[a.b]",
  "é",
  "💥",
] as const;

/** Changes a text at one to four positions. `random`: gives numbers from 0 to 1. */
export function createMutator(random: () => number): (text: string) => string {
  const below = (limit: number): number => Math.floor(random() * limit);
  const once = (text: string): string => {
    const at = below(text.length + 1);
    const end = Math.min(text.length, at + 1 + below(12));
    const piece = PIECES[below(PIECES.length)] ?? "";
    switch (below(6)) {
      case 0:
        return text.slice(0, at) + text.slice(end);
      case 1:
        return text.slice(0, at) + piece + text.slice(at);
      case 2:
        return text.slice(0, at) + piece + text.slice(end);
      case 3:
        return text.slice(0, at) + text.slice(at, end).repeat(2) + text.slice(end);
      case 4:
        return text.slice(0, at);
      default: {
        // One value for another: the text stays valid JSON, its meaning does not.
        const values = [...text.matchAll(/"[^"\n]*"|\d+|true|false/g)];
        const value = values[below(values.length)];
        if (!value) return text;
        return text.slice(0, value.index) + piece + text.slice(value.index + value[0].length);
      }
    }
  };
  return (text) => {
    let mutated = text;
    for (let rounds = 1 + below(4); rounds > 0; rounds--) mutated = once(mutated);
    return mutated;
  };
}

/** Throws if a problem lacks its message, its position in the text, or its remedy. */
export function checkProblem(problem: ConfigProblem, text: string): void {
  const lines = text.split("\n").length;
  const whole = `${JSON.stringify(problem)} in ${JSON.stringify(text)}`;
  if (!problem.file || !problem.message || !problem.remedy) throw new Error(`incomplete: ${whole}`);
  if (!problem.line || !problem.column || problem.line > lines) throw new Error(`no position: ${whole}`);
  if (!describeProblem(problem).startsWith(`${problem.file}:${problem.line}:${problem.column}: `))
    throw new Error(whole);
}

/** Parses and merges a text like a file of ours; throws if a problem is incomplete. */
export function readOwn(text: string, i: number): { problems: number; servers: number } {
  const source = [USER, PROJECT_FILE, PROJECT_PI][i % 3] ?? USER;
  const config = parseConfigText(text, source);
  const merged = mergeLayers({ registered: [], hosts: [], files: [config] });
  for (const problem of [...config.problems, ...merged.problems]) checkProblem(problem, text);
  const { allowed } = decideTrust(merged.servers, [], {
    projectTrusted: true,
    canAsk: true,
    folder: "/w",
  });
  plan({ servers: [], settings: merged.settings }, { servers: allowed, settings: merged.settings });
  return { problems: config.problems.length, servers: merged.servers.length };
}

const HOST_FILES = {
  cursor: "cursor.json",
  "claude-code": "claude-code.json",
  "claude-desktop": "claude-desktop.json",
  codex: "codex.toml",
  windsurf: "windsurf.json",
  vscode: "vscode.json",
  opencode: "opencode.jsonc",
  "gemini-cli": "gemini-cli.json",
  "copilot-cli": "copilot-cli.json",
};

/** A file of each other program, in the order of `HOSTS`. */
export const hostTexts = (): Promise<string[]> => Promise.all(HOSTS.map((host) => fixture(HOST_FILES[host])));

/** Parses a text like a file of another program; throws if a problem is incomplete. */
export function readHost(text: string, host: (typeof HOSTS)[number]): { servers: number } {
  const [source] = hostSources(host, facts());
  if (!source) throw new Error("no source");
  const file = parseHostText(text, { host, source, facts: facts(), before: [] });
  for (const problem of file.problems) checkProblem(problem, text);
  return { servers: file.servers.length };
}
