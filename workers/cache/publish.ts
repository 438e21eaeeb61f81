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
  encodeSnapshot,
  type SnapshotServer,
  type SnapshotTool,
  snapshotChecksum,
} from "../../src/protocol/snapshot.ts";
import type { ToolAnnotations } from "../../src/protocol/types.ts";
import { buildIndex } from "../../src/search/weighted.ts";
import { writeFileAtomic } from "./atomic-file.ts";
import { type CacheEntry, writeCache } from "./metadata-cache.ts";
import { normalizeInputSchema } from "./schema.ts";
import type { CachedTool } from "./tool.ts";

/** A tool with what the configuration makes of it. */
export type PublishedTool = CachedTool & {
  /** Declared to the model from the first request on. */
  direct: boolean;
};

export interface PublishTask {
  cachePath: string;
  snapshotPath: string;
  /** New entries for the cache file, by server. */
  entries: Record<string, CacheEntry>;
  /** The whole catalog, servers in the order of the configuration. */
  servers: (SnapshotServer & { tools: PublishedTool[] })[];
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

function toSnapshotTools(servers: PublishTask["servers"]): SnapshotTool[] {
  const flat = servers.flatMap((server, index) =>
    server.tools.map(({ direct, ...tool }) => ({ server: server.name, index, direct, tool })),
  );
  const names = assignToolNames(flat.map(({ server, tool }) => ({ server, tool: tool.name })));
  return flat.map(({ index, tool, direct }, i) => {
    const schema = normalizeInputSchema(tool.inputSchema);
    const given = tool.annotations?.title;
    const title = tool.title ?? (typeof given === "string" ? given : undefined);
    return {
      name: names[i] ?? tool.name,
      server: index,
      tool: tool.name,
      description: tool.description?.trim() || title || `${tool.name} of ${servers[index]?.name}`,
      ...(direct ? { direct } : {}),
      ...(tool.annotations ? { annotations: tool.annotations as ToolAnnotations } : {}),
      schemaKeys: Object.keys(schema),
      schema: encode(schema),
    };
  });
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
  const tools = toSnapshotTools(task.servers);
  const servers = task.servers.map(({ tools: _tools, ...server }) => server);
  const snapshot = encodeSnapshot({ servers, tools, index: buildIndex(tools) }, crc32);
  const checksum = snapshotChecksum(snapshot) ?? 0;
  if (checksum === task.knownChecksum) return { checksum, problems, threadId };
  await attempt(task.snapshotPath, problems, () => writeFileAtomic(task.snapshotPath, snapshot));
  return { checksum, snapshot, problems, threadId };
}
