/** Cache and snapshot files with any content: no crash, and no false content counts as known. */

import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { catalogFrom } from "../../../../src/catalog/catalog.ts";
import { readCatalog, snapshotPath } from "../../../../src/catalog/store.ts";
import { readCache, readLines } from "../../../../workers/cache/metadata/metadata.ts";
import { readList } from "../../../../workers/shared/listed.ts";
import { repeats } from "../../../support/long.ts";
import { createRandom } from "../../random.ts";
import { tempFolder } from "../../temp-folder.ts";
import {
  checkAnswer,
  checkStore,
  DEFINITION,
  inMemory,
  ownCache,
  SERVERS,
  SNAPSHOT_TOOLS,
  sameSnapshot,
  spoil,
  spoiledCache,
  wholeSnapshot,
} from "./mutate.ts";
import { context } from "./support.ts";

const FILES = repeats("FUZZ_FILES", 400);
/** How many of them also go through real files. */
const REAL_FILES = Math.min(FILES / 50, 200);
const SEED = 20_260_115;

describe(`seed ${SEED}`, () => {
  test(`${FILES} cache files -> no crash, what is found is an entry, what is not is a miss`, async () => {
    const random = createRandom(SEED);
    const definitions = Object.fromEntries(SERVERS.map((name) => [name, DEFINITION]));
    const counts = { hits: 0, misses: 0, problems: 0 };
    for (let i = 0; i < FILES; i++) {
      const files = inMemory(spoiledCache(random));
      const answer = await readCache({ path: "/x", definitions }, context({ files }));
      checkAnswer(answer);
      const hits = Object.keys(answer.entries).length;
      counts.hits += hits;
      counts.misses += SERVERS.length - hits;
      counts.problems += answer.problems.length;
    }
    // Each kind must occur, or the fuzzer proves nothing.
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(FILES / 10);
  });

  test(`${FILES} files of our own layout, spoiled -> what is found without parsing is what was written`, async () => {
    const random = createRandom(SEED + 3);
    const definitions = Object.fromEntries(SERVERS.map((name) => [name, DEFINITION]));
    const whole = ownCache();
    const ask = (bytes: Buffer) =>
      readLines({ path: "/x", definitions }, context({ files: inMemory(bytes) }));
    const written = (await ask(whole))?.entries ?? {};
    expect(Object.keys(written)).toEqual(SERVERS);
    const counts = { unread: 0, hits: 0 };
    for (let i = 0; i < FILES; i++) {
      const answer = await ask(spoil(whole, random));
      if (!answer) {
        counts.unread++;
        continue;
      }
      checkAnswer(answer);
      for (const [name, { tools }] of Object.entries(answer.entries)) {
        counts.hits++;
        expect(readList(tools), `file ${i}`).toEqual(readList(written[name]?.tools ?? []));
      }
    }
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(FILES / 10);
  });

  test(`storing into ${REAL_FILES} of them -> never throws; stored, or the file is as it was`, async () => {
    const random = createRandom(SEED + 1);
    for (let i = 0; i < REAL_FILES; i++) {
      await checkStore(join(await tempFolder(), "mcp-cache.json"), spoiledCache(random));
    }
  });

  test(`${FILES} snapshots -> each that differs is a miss`, async () => {
    const random = createRandom(SEED + 2);
    const whole = wholeSnapshot();
    const agentDir = await tempFolder();
    const path = snapshotPath(agentDir, { cwd: "/project" });
    await mkdir(dirname(path));
    let spoiled = 0;
    for (let i = 0; i < FILES; i++) {
      const bytes = spoil(whole, random);
      const same = sameSnapshot(bytes, whole);
      if (!same) spoiled++;
      expect(catalogFrom(bytes) !== undefined, `file ${i}`).toBe(same);
      if (i >= REAL_FILES) continue;
      await writeFile(path, bytes);
      expect(readCatalog(agentDir, { cwd: "/project" }).tools).toHaveLength(same ? SNAPSHOT_TOOLS : 0);
    }
    expect(spoiled).toBeGreaterThan(FILES * 0.9);
  });
});
