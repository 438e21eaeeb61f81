/**
 * Owns: tests of valid input with random accidents: configuration, messages over stdio and HTTP, schemas, cache and
 * snapshot files. Nothing crashes or hangs, and every call is answered or fails.
 *
 * A default run is small. HOSTILE_MUTATIONS=10000 makes 10,000 mutations of each kind and takes some minutes.
 * HOSTILE_SEED selects other accidents. A failure names the seed and the mutation's number, and only these two decide
 * the mutation. An accident during a connect depends on the number of the connection, and so on earlier mutations.
 *
 *   HOSTILE_MUTATIONS=10000 HOSTILE_SEED=7 npx vitest run test/hostile/mutations.test.ts
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { catalogFrom, inputSchemaOf } from "../../src/catalog/catalog.ts";
import { readCatalog, snapshotPath } from "../../src/catalog/store.ts";
import { HOSTS } from "../../src/shared/import-names.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../src/shared/protocol/session.ts";
import { lazyInputSchema } from "../../src/tools/definition.ts";
import { readCache } from "../../workers/cache/metadata/metadata.ts";
import { repairInputSchema, repairOutputSchema } from "../../workers/cache/schema/schema.ts";
import { makeSnapshot } from "../../workers/cache/snapshot/make.ts";
import { readShort } from "../../workers/connection/messages/incoming.ts";
import { normalizeTools } from "../../workers/shared/listed.ts";
import { oneFile } from "../support/one-file.ts";
import { piValidator } from "../support/pi-validator.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";
import * as cache from "../unit/workers/cache/mutate.ts";
import { context } from "../unit/workers/cache/support.ts";
import * as config from "../unit/workers/connection/config/mutate.ts";
import { onCleanup, startHttp } from "../worker/support.ts";
import { type Json, mutateAnswer, pickFrom, type Random, randomFor } from "./servers/mutations.ts";
import { soundResult } from "./servers/sound-answers.ts";
import {
  COUNT,
  checkCalls,
  HANG_MS,
  SEED,
  SERVER_NAMES,
  SHORT,
  serverFile,
} from "./support/mutated-calls.ts";
import { argumentsFor, mutatedSchema } from "./support/mutated-schema.ts";
import { mutatingHttp } from "./support/mutating-http.ts";

/** A run of 10,000 takes some minutes on a busy machine. */
const TEST_MS = 60_000 + COUNT * 200;

/** Runs the mutations one after the other, and adds the seed and the mutation's number to an error. */
async function each(run: (random: Random, number: number) => unknown): Promise<void> {
  for (let number = 0; number < COUNT; number++) {
    const begunMs = performance.now();
    try {
      await run(randomFor(SEED, number), number);
    } catch (error) {
      throw new Error(`seed ${SEED}, mutation ${number}: ${String(error)}`, { cause: error });
    }
    const tookMs = performance.now() - begunMs;
    if (tookMs > HANG_MS) throw new Error(`seed ${SEED}, mutation ${number}: took ${Math.round(tookMs)} ms`);
  }
}

async function createFolder(): Promise<string> {
  const folder = await makeTempFolder("pmt-mutations");
  onCleanup(() => removeFolder(folder));
  return folder;
}

test(
  "configuration files -> each file is read, and each mistake has a line and column",
  async () => {
    const texts = await config.hostTexts();
    await each((random, number) => {
      const mutate = config.createMutator(random.next);
      config.readOwn(mutate(config.OWN), number);
      const at = number % HOSTS.length;
      config.readHost(mutate(texts[at] ?? ""), HOSTS[at] ?? "cursor");
    });
  },
  TEST_MS,
);

test(
  "input schemas -> each becomes a schema that Pi compiles and checks, also after a snapshot",
  async () => {
    const check = await piValidator();
    const verdict = (schema: unknown, args: unknown): string => {
      try {
        check(schema, args);
        return "runs";
      } catch (error) {
        return (error as Error).message;
      }
    };
    await each((random) => {
      const raw = mutatedSchema(random);
      repairOutputSchema(raw);
      const { schema } = repairInputSchema(raw);
      expect(schema.type).toBe("object");
      expect(verdict(schema, argumentsFor(random))).toMatch(/^(runs$|Validation failed)/);
      const tools = normalizeTools([{ name: "t", description: "d", inputSchema: raw, outputSchema: raw }]);
      const server = {
        name: "s",
        project: false,
        toolsKnown: true,
        tools: tools.map((tool) => ({ ...tool, direct: false })),
      };
      const { snapshot } = makeSnapshot([server], DEFAULT_CATALOG_SETTINGS, { limitBytes: 2 ** 20 });
      const stored = catalogFrom(snapshot);
      if (!stored) throw new Error("its own snapshot is none");
      for (const tool of stored.tools) {
        const whole = inputSchemaOf(tool);
        expect(JSON.parse(JSON.stringify(lazyInputSchema(tool)))).toEqual(JSON.parse(JSON.stringify(whole)));
        expect(verdict(whole, argumentsFor(random))).toMatch(/^(runs$|Validation failed)/);
      }
    });
  },
  TEST_MS,
);

test(
  "metadata cache files -> each result is a valid entry, and a write succeeds or changes nothing",
  async () => {
    const definitions = Object.fromEntries(cache.SERVERS.map((name) => [name, cache.DEFINITION]));
    const folder = await createFolder();
    await each(async (random, number) => {
      const bytes = cache.spoiledCache(random);
      const files = cache.inMemory(bytes);
      cache.checkAnswer(await readCache({ path: "/x", definitions }, context({ files })));
      // A real file costs system calls that wait for the disk, so only one mutation in ten writes a file.
      if (number % 10 > 0) return;
      const place = join(folder, String(number));
      await mkdir(place);
      await cache.checkStore(join(place, "mcp-cache.json"), bytes);
    });
  },
  TEST_MS,
);

test(
  "snapshot files -> each file that differs is refused",
  async () => {
    const whole = cache.wholeSnapshot();
    const agentDir = await createFolder();
    const path = snapshotPath(agentDir, { cwd: "/project" });
    await mkdir(dirname(path));
    await each(async (random, number) => {
      const bytes = cache.spoil(whole, random);
      const same = cache.sameSnapshot(bytes, whole);
      expect(catalogFrom(bytes) !== undefined).toBe(same);
      if (number % 10 > 0) return;
      await writeFile(path, bytes);
      expect(readCatalog(agentDir, { cwd: "/project" }).tools).toHaveLength(same ? cache.SNAPSHOT_TOOLS : 0);
    });
  },
  TEST_MS,
);

test(
  "answers -> all that is read of them is what the SDK takes, so no answer is lost on its way",
  () =>
    each((random) => {
      const asked = pickFrom(random, ["initialize", "tools/list", "tools/call"]);
      for (const bytes of mutateAnswer({ jsonrpc: "2.0", id: 7, result: soundResult(asked, {}) }, random)) {
        const incoming = readShort(bytes, { batches: true });
        for (const message of incoming.kind === "messages" ? incoming.messages : []) {
          const { id, method } = message as Json;
          const named = typeof id === "string" || Number.isSafeInteger(id);
          // What has no such id answers no request of ours.
          if (id === undefined ? method === undefined : !named) continue;
          expect(JSONRPCMessageSchema.safeParse(message).error).toBeUndefined();
        }
      }
    }),
  TEST_MS,
);

test(
  "messages over stdio -> every call is answered or fails, and the worker and the healthy server keep working",
  async () => {
    const folder = await createFolder();
    const { file, env } = oneFile("mutates", serverFile("mutates.ts"));
    const entry = (name: string, at: number) => ({
      command: process.execPath,
      args: [file],
      env: { ...env, SEED: String(SEED), SERVER: String(at), STATE: join(folder, name) },
      ...SHORT,
    });
    await checkCalls(Object.fromEntries(SERVER_NAMES.map((name, at) => [name, entry(name, at)])), "stdio");
  },
  TEST_MS,
);

test(
  "messages over HTTP, as JSON and as events -> every call is answered or fails, and the worker and the healthy server keep working",
  async () => {
    const origin = await startHttp(mutatingHttp(SEED));
    await checkCalls(
      Object.fromEntries(SERVER_NAMES.map((name) => [name, { url: `${origin}/${name}`, ...SHORT }])),
      "HTTP",
    );
  },
  TEST_MS,
);
