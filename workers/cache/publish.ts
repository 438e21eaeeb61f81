/**
 * One task: store what servers listed, and make the snapshot of the whole catalog from it. The snapshot
 * goes to its file only when its content differs from what main already has.
 */
import { threadId } from "node:worker_threads";
import { crc32 } from "node:zlib";
import { encode } from "../../src/protocol/codec.ts";
import { messageOf } from "../../src/protocol/errors.ts";
import { assignToolNames } from "../../src/protocol/names.ts";
import {
  type CatalogSettings,
  encodeSnapshot,
  type SnapshotServer,
  type SnapshotTool,
  snapshotChecksum,
} from "../../src/protocol/snapshot.ts";
import type { ToolAnnotations } from "../../src/protocol/types.ts";
import { buildEngine } from "../../src/search/build-engine.ts";
import { writeFileAtomic } from "./atomic-file.ts";
import { type CacheEntry, writeCache } from "./metadata-cache.ts";
import { normalizeInputSchema } from "./schema.ts";
import { type CachedTool, normalizeTools } from "./tool.ts";

export interface PublishTask {
  cachePath: string;
  snapshotPath: string;
  /** New entries for the cache file, by server. */
  entries: Record<string, CacheEntry>;
  /**
   * The whole catalog, servers in the order of the configuration. `about`: what is known of the server in its
   * own words and the user's, for the index only.
   */
  servers: (SnapshotServer & { about?: string; tools: CachedTool[] })[];
  settings: CatalogSettings;
  /** Checksum of the snapshot that main and the file hold already. */
  knownChecksum: number | undefined;
}

export interface PublishResult {
  checksum: number;
  /** Absent where main has this content already. */
  snapshot?: Uint8Array<ArrayBuffer>;
  /** What could not be written, one line each. The session goes on without. */
  problems: string[];
  /** Thread that did it, for the log. */
  threadId: number;
}

interface Published {
  tools: SnapshotTool[];
  index: Uint8Array;
}

function toPublished({ servers, settings }: PublishTask): Published {
  const flat = servers.flatMap((server, index) =>
    normalizeTools(server.tools).map((tool) => ({
      server: server.name,
      serverDescription: server.about ?? server.description ?? "",
      index,
      tool,
    })),
  );
  const names = assignToolNames(flat.map(({ server, tool }) => ({ server, tool: tool.name })));
  const tools = flat.map(({ index, tool }, i) => {
    const schema = normalizeInputSchema(tool.inputSchema);
    const given = tool.annotations?.title;
    const title = tool.title ?? (typeof given === "string" ? given : undefined);
    return {
      name: names[i] ?? tool.name,
      server: index,
      tool: tool.name,
      description: tool.description?.trim() || title || `${tool.name} of ${servers[index]?.name}`,
      ...(tool.annotations ? { annotations: tool.annotations as ToolAnnotations } : {}),
      schemaKeys: Object.keys(schema),
      schema: encode(schema),
    };
  });
  const indexed = flat.map(({ server, serverDescription, tool }, i) => ({
    server,
    serverDescription,
    name: tool.name,
    fullName: tools[i]?.name ?? tool.name,
    description: tools[i]?.description ?? "",
    inputSchema: tool.inputSchema,
  }));
  return { tools, index: buildEngine(settings.search, indexed) };
}

/** Runs `write`; a failure becomes a line for the log. */
async function attempt(what: string, problems: string[], write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    problems.push(`${what} could not be written: ${messageOf(error)}`);
  }
}

export async function publish(task: PublishTask): Promise<PublishResult> {
  const problems: string[] = [];
  if (Object.keys(task.entries).length > 0) {
    await attempt(task.cachePath, problems, () => writeCache(task.cachePath, task.entries));
  }
  const servers = task.servers.map(({ tools: _tools, about: _about, ...server }) => server);
  const snapshot = encodeSnapshot({ settings: task.settings, servers, ...toPublished(task) }, crc32);
  const checksum = snapshotChecksum(snapshot) ?? 0;
  if (checksum === task.knownChecksum) return { checksum, problems, threadId };
  await attempt(task.snapshotPath, problems, () => writeFileAtomic(task.snapshotPath, snapshot));
  return { checksum, snapshot, problems, threadId };
}
