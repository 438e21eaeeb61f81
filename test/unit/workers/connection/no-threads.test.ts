/** Owns: what needs a thread of its own where the system gives none, as at a container's limit: it fails each time, and nothing waits. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const WORKERS = join(import.meta.dirname, "../../../../workers/connection");
const moduleAt = (path: string): string => JSON.stringify(pathToFileURL(join(WORKERS, path)).href);

/** Runs the body in a Node that starts no thread: `new Worker` throws at once there, as at the limit. */
async function withoutThreads(body: string): Promise<unknown> {
  const script = `${body}\nprocess.stdout.write(JSON.stringify(said));`;
  const flags = ["--permission", "--allow-fs-read=*", "--input-type=module", "-e"];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, script]);
  return JSON.parse(stdout);
}

test("a pattern over the tools -> a problem, and the next one does not wait for it", async () => {
  const said = await withoutThreads(`
    const { createPatternMatcher } = await import(${moduleAt("session/match-pattern.ts")});
    const { match } = createPatternMatcher();
    const said = [];
    for (const pattern of ["a", "b"])
      said.push((await match({ pattern, columns: ["a"] }, new AbortController().signal)).problem);`);
  expect(said).toEqual(Array(2).fill(expect.stringMatching(/^it could not be tried: /)));
});

test("long messages -> each fails, and those that wait do, too", async () => {
  const said = await withoutThreads(`
    const { HeavyThread } = await import(${moduleAt("messages/heavy-thread.ts")});
    const heavy = new HeavyThread();
    heavy.warm();
    const run = () => heavy.run({ server: "s", bytes: 1, message: { job: heavy.newJob() }, transfer: [], isOver: () => false });
    const said = await Promise.all([run(), run()].map((one) => one.catch(({ message }) => message)));`);
  expect(said).toEqual(Array(2).fill(expect.stringMatching(/the thread that reads long messages ended: /)));
});
