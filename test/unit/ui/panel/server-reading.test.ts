/** Owns: when a server's details are read, and which answers count. The session is a fake. */
import { expect, test } from "vitest";
import type { ServerDetails } from "../../../../src/shared/protocol/panel.ts";
import type { PanelHost } from "../../../../src/ui/panel/panel.ts";
import { createServerReading } from "../../../../src/ui/panel/server-reading.ts";
import { makeCatalog } from "../../make-catalog.ts";
import { makeDetails } from "./support.ts";

function setup() {
  const answers: {
    server: string;
    resolve: (details: ServerDetails) => void;
    reject: (e: unknown) => void;
  }[] = [];
  const host = {
    ask: ((_method: string, { server }: { server: string }) => {
      const { promise, resolve, reject } = Promise.withResolvers<ServerDetails>();
      answers.push({ server, resolve, reject });
      return promise;
    }) as PanelHost["ask"],
    catalog: () => makeCatalog([]),
  };
  const shown: string[] = [];
  const reading = createServerReading(host, ({ details, tools }) => {
    for (const [server, { runs }] of details ?? []) shown.push(`${server}: ${runs}`);
    for (const [server, { rows }] of tools ?? []) shown.push(`${server}: ${rows.length} tools`);
  });
  const answer = (at: number, runs: string): void => answers[at]?.resolve(makeDetails({ runs }));
  return { reading, shown, answers, answer };
}

test("a server -> its details, then its tools; the same server again -> it is not asked for", async () => {
  const { reading, shown, answers, answer } = setup();
  const read = reading.follow("git");
  await reading.follow("git");
  answer(0, "npx");
  await read;
  expect(shown).toEqual(["git: npx", "git: 3 tools"]);
  expect(answers).toHaveLength(1);
});

test("another server meanwhile -> the first one's late answer is dropped", async () => {
  const { reading, shown, answer } = setup();
  const reads = [reading.follow("git"), reading.follow("fs")];
  answer(1, "two");
  answer(0, "one");
  await Promise.all(reads);
  expect(shown).toEqual(["fs: two", "fs: 3 tools"]);
});

test("the session has changed -> the same server is read again, and the answer before is dropped", async () => {
  const { reading, shown, answer } = setup();
  const reads = [reading.follow("git")];
  reading.forget();
  reads.push(reading.follow("git"));
  answer(0, "old");
  answer(1, "new");
  await Promise.all(reads);
  expect(shown).toEqual(["git: new", "git: 3 tools"]);
});

test("it is stopped, or fails -> nothing is shown", async () => {
  const { reading, shown, answers, answer } = setup();
  const failed = reading.follow("git");
  answers[0]?.reject(new Error("gone"));
  await expect(failed).rejects.toThrow("gone");
  const late = reading.follow("fs");
  reading.stop();
  answer(1, "late");
  await late;
  expect(shown).toEqual([]);
});
