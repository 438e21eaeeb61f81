/** Owns: the commands that change or call something, given a name that is merely like a server's. The worker is a fake. */
import { expect, test } from "vitest";
import { createCatalogStore } from "../../../src/catalog/store.ts";
import { loadCommand } from "../../../src/cli/commands/commands.ts";
import type { Context } from "../../../src/cli/commands/known.ts";
import type { CliSession } from "../../../src/cli/session/session.ts";
import { NO_OPTIONS } from "../../../src/cli/words/parse.ts";

const agentDir = "/no/such/agent";
const key = { cwd: "/no/such/project", configFile: undefined };

/** A session of a worker that knows one server and takes no request. */
const session = {
  store: createCatalogStore(agentDir, key),
  planned: async () => ({
    servers: [{ name: "github", state: "idle", toolsKnown: false }],
    problems: [],
    files: [],
    questions: [],
    refused: [],
  }),
} as unknown as CliSession;

const context = (...words: string[]): Context =>
  ({
    place: { agentDir, key, trust: { trust: "by-option" } },
    options: NO_OPTIONS,
    arguments: words,
    signal: new AbortController().signal,
    session: async () => session,
    stdin: async () => Buffer.alloc(0),
  }) as unknown as Context;

test.each([["remove"], ["disable"], ["enable"], ["login"], ["logout"], ["call", "work"]] as const)(
  "%s of a name that is merely alike -> a mistake of usage, before anything is asked of the worker",
  async (word, ...more) => {
    const command = await loadCommand(word);
    await expect(command(context("git-hub", ...more))).rejects.toMatchObject({
      exitCode: 2,
      message: "No server named git-hub is configured.",
      remedy: "One is named github. This command needs the exact name.",
    });
  },
);
