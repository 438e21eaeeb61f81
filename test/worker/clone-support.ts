/**
 * Owns: a hostile clone with an agent folder and an npm cache beside it, and servers that start in the clone as the
 * worker starts them.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  type Origin,
  parseEntry,
  type ServerDefinition,
} from "../../workers/connection/config/entry/definition.ts";
import type { Connection } from "../../workers/connection/mcp/connection.ts";
import { connect } from "../../workers/connection/transports/transports.ts";
import { onCleanup } from "../support/cleanup.ts";
import { fillHostileClone } from "../support/hostile-clone.ts";
import { connectOptions } from "../support/http-server.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";

type Entry = Record<string, unknown>;

export interface ClonePlace {
  /** The parent folder of all others. Only the clone in it is hostile. */
  root: string;
  clone: string;
  agentDir: string;
  npmCache: string;
  /** The file to which each program of the clone writes its name when it runs. */
  ran: string;
  notes: string[];
  /** A PATH whose search also includes the current folder. */
  PATH: string;
  /** The user's npm settings, independent of the settings of the person who runs the tests. */
  npmSettings: Record<string, string>;
  /** Connects as the worker does, with Pi running in the clone. */
  start(entry: Entry, origin: Origin): Promise<Connection>;
}

export function definitionOf(entry: Entry, origin: Origin): ServerDefinition {
  const { definition } = parseEntry("s", entry, { file: "mcp.json", origin });
  if (!definition) throw new Error("the entry is wrong");
  return definition;
}

export async function hostilePlace(): Promise<ClonePlace> {
  const root = await makeTempFolder("pmt-clone");
  onCleanup(() => removeFolder(root));
  const [clone, agentDir, npmCache] = ["clone", "agent", "npm-cache"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  const ran = join(root, "ran");
  const notes: string[] = [];
  await mkdir(agentDir);
  await fillHostileClone(clone, ran);
  const start: ClonePlace["start"] = async (entry, origin) => {
    const options = connectOptions(entry, {
      definition: definitionOf(entry, origin),
      cwd: clone,
      npxCacheFile: join(agentDir, "mcp-npx-cache.json"),
      onNote: (note) => notes.push(note),
      redact: (text) => text,
    });
    const connection = await connect(options);
    onCleanup(() => connection.close({ termMs: 250, killMs: 800 }));
    return connection;
  };
  const PATH = `:.:node_modules/.bin:${process.env.PATH}`;
  const npmSettings = { npm_config_cache: npmCache, npm_config_userconfig: join(root, "npmrc") };
  return { root, clone, agentDir, npmCache, ran, notes, PATH, npmSettings, start };
}
