/**
 * Owns: files with random mistakes: nothing throws, and every message has a position. `npm run test:long` reads many.
 */
import { expect, test } from "vitest";
import { HOSTS } from "../../../../../src/shared/import-names.ts";
import { parseConfigText } from "../../../../../workers/connection/config/files/files.ts";
import { hostSources, parseHostText } from "../../../../../workers/connection/config/hosts/hosts.ts";
import { repeats } from "../../../../support/long.ts";
import { checkProblem, createMutator, hostTexts, OWN, readHost, readOwn } from "./mutate.ts";
import { createRandom, facts, USER } from "./support.ts";

/** The number of files of ours, and of files of other programs. */
const FILES = repeats("FUZZ_FILES", 400) / 2;

test(`${FILES} files of our own`, () => {
  const mutate = createMutator(createRandom(20_261_121));
  let withProblems = 0;
  let servers = 0;
  for (let i = 0; i < FILES; i++) {
    const read = readOwn(mutate(OWN), i);
    withProblems += read.problems > 0 ? 1 : 0;
    servers += read.servers;
  }
  // The mistakes are real, and most of them cost less than the whole file.
  expect(withProblems).toBeGreaterThan(FILES / 5);
  expect(servers).toBeGreaterThan(FILES / 10);
});

test(`${FILES} files of other programs`, async () => {
  const mutate = createMutator(createRandom(7));
  const texts = await hostTexts();
  let servers = 0;
  for (let i = 0; i < FILES; i++) {
    const at = i % HOSTS.length;
    servers += readHost(mutate(texts[at] ?? ""), HOSTS[at] ?? "cursor").servers;
  }
  expect(servers).toBeGreaterThan(FILES / 5);
});

test("a text that is nested too deeply is a problem like any other", () => {
  const text = "[".repeat(200_000);
  const { problems } = parseConfigText(`{"mcpServers": ${text}`, USER);
  expect(problems).toHaveLength(1);
  for (const problem of problems) checkProblem(problem, text);
  const [source] = hostSources("codex", facts());
  if (source)
    expect(parseHostText(`a = ${text}`, { host: "codex", source, facts: facts(), before: [] }).broken).toBe(
      true,
    );
});
