/**
 * Owns: files of a project on a file system that does not answer: the user's own servers do not wait for them, the user is
 * told, nobody asks such a file again and again, and it counts when it answers. No real file system can be made silent
 * without the rights of root, so that a read that settles later stands for one.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import {
  type FileText,
  readInTime,
  readText,
} from "../../../../../../workers/connection/config/files/sources.ts";
import { configFacts, loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { inTime, silenceOf } from "../../../../../../workers/shared/files/file-system.ts";
import { becomes, configOf, createHome, open, put, server } from "./support.ts";

/** A read of this file that does not answer before `answer` is called. */
async function silence(file: string): Promise<{ answer: () => void; reads: () => number }> {
  const { promise, resolve } = Promise.withResolvers<FileText>();
  let reads = 0;
  const read = (): Promise<FileText> => {
    reads++;
    return promise;
  };
  expect(await readInTime(file, 1_000, read)).toMatchObject({ kind: "unreadable" });
  return { answer: () => resolve({ kind: "missing" }), reads: () => reads };
}

test("a project's file that does not answer -> the others count after 2 s, the problem names it, and it is read once", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server() }));
  await put(home.projectPi, configOf({ pi: server() }));
  const asked: string[] = [];
  const never = new Promise<FileText>(() => undefined);
  const read = (file: string, bytes: number): Promise<FileText> => {
    asked.push(file);
    return file === home.projectFile ? never : readText(file, bytes);
  };
  const facts = configFacts({ agentDir: home.agentDir, cwd: home.cwd, projectTrusted: true });
  const first = await loadConfig(facts, undefined, read);
  expect(first.servers.map(({ name }) => name)).toEqual(["own", "pi"]);
  expect(first.problems).toMatchObject([
    {
      severity: "error",
      file: home.projectFile,
      message: "cannot be read: its file system has not answered within 2 s",
    },
  ]);
  expect(first.files).toContain(home.projectFile);
  expect(first.watched).not.toContain(home.projectFile);
  expect(first.watched).not.toContain(home.projectPi);
  expect(first.watched).toContain(home.mcp);
  const again = await loadConfig(facts, first, read);
  expect(again.unanswered).toEqual(first.unanswered);
  expect(asked.filter((file) => file === home.projectFile)).toHaveLength(1);
  expect(await readText(home.projectFile, 1_000)).toMatchObject({ kind: "unreadable" });
});

test("a user's own file may take longer: nothing of the user is left out", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server() }));
  const facts = configFacts({ agentDir: home.agentDir, cwd: home.cwd, projectTrusted: true });
  const slow = async (file: string, bytes: number): Promise<FileText> => {
    if (file === home.mcp) await new Promise((resolve) => setTimeout(resolve, LIMITS.projectReadMs + 100));
    return readText(file, bytes);
  };
  const { servers, problems } = await loadConfig(facts, undefined, slow);
  expect(servers.map(({ name }) => name)).toEqual(["own"]);
  expect(problems).toEqual([]);
});

test(".mcp.json and .pi/mcp.json do not answer at the start -> own servers run; both are read when they answer, and each server is asked for", async () => {
  const home = await createHome();
  await mkdir(join(home.cwd, ".pi"));
  await put(home.mcp, configOf({ own: server() }));
  await put(home.projectFile, configOf({ theirs: server() }));
  await put(home.projectPi, configOf({ pi: server() }));
  const late = await Promise.all([silence(home.projectFile), silence(home.projectPi)]);
  const pi = await open(home, { projectFile: "a stamp of the start" });
  expect(pi.runs()).toEqual(["own"]);
  expect(pi.running.state.problems).toMatchObject([
    { file: home.projectFile, message: expect.stringContaining("has not answered") },
    { file: home.projectPi, message: expect.stringContaining("has not answered") },
  ]);
  for (const { answer } of late) answer();
  await becomes(pi.asked, ["theirs", "pi"]);
  await becomes(() => pi.running.state.problems, []);
  expect(late.map(({ reads }) => reads())).toEqual([1, 1]);
  await put(home.projectFile, configOf({ later: server() }));
  await becomes(pi.asked, ["later", "pi"]);
});

test("an envFile and a script that do not answer -> the decision is made without them, and each is looked at once", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server() }));
  await put(home.projectFile, configOf({ theirs: server([], { envFile: ".env" }) }));
  const { promise, resolve } = Promise.withResolvers<void>();
  await inTime(`${home.projectFile} .env`, () => promise, 1);
  const pi = await open(home);
  expect(pi.runs()).toEqual(["own"]);
  expect(pi.running.state.questions[0]?.question).toContain(
    "env from .env, which cannot be used now: its file system has not answered within 2 s",
  );
  resolve();
  await silenceOf(`${home.projectFile} .env`);
  expect(silenceOf(`${home.projectFile} .env`)).toBeUndefined();
});
