/**
 * Owns: the two formats of plugins, and the servers of one plugin. Agent Plugins 1.0.0 (agent-plugins.org/specification,
 * sections 4, 5, 7.2 and 9): plugin.json and mcp.json, whose values are literal but for two placeholders. Claude plugins
 * (code.claude.com/docs/en/plugins-reference): .claude-plugin/plugin.json, .mcp.json and what `mcpServers` of the manifest
 * names. A mistake costs the part that holds it, and is a warning.
 */
import { createHash } from "node:crypto";
import { basename, join, resolve } from "node:path";
import * as z from "zod";
import { isBundle, UNPACK } from "../../../../src/shared/pasted.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { isWithin } from "../../../shared/programs/find-program.ts";
import type { Base, ServerDefinition } from "../entry/definition.ts";
import { check, kindOf } from "../entry/mistakes.ts";
import { toProblems } from "../files/files.ts";
import { PACKAGE_SERVER_FILES } from "../files/sources.ts";
import { DIALECTS } from "../hosts/dialects.ts";
import { type Data, type Format, objectAt } from "../hosts/format.ts";
import {
  type JsonObject,
  LEADS_OUT,
  type Loader,
  packageProblem,
  plainName,
  type ReadPackage,
  readObject,
  readServers,
  realOf,
  serverNameIn,
  sourceOf,
  staysIn,
} from "./loader.ts";

export interface Plugin {
  /** Without links. */
  folder: string;
  /** The name under which it is installed; undefined: its manifest says it. */
  name?: string | undefined;
  /** Where its servers keep data; undefined: in a folder below the agent folder. */
  data?: string | undefined;
  /** It was installed as a Claude plugin. */
  isClaude?: true;
}

const AGENT_PLUGINS = "https://agent-plugins.org/";
const SCHEMAS = `${AGENT_PLUGINS}schemas/1.0.0`;

/** Section 5: the fields of the manifest. `extensions` is checked apart, since a wrong one costs nothing else. */
const MANIFEST = {
  $schema: z.literal(`${SCHEMAS}/plugin.schema.json`),
  name: z
    .string()
    .regex(/^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?$/, "is not a name of an Agent Plugin"),
  version: z.string(),
  description: z.string(),
  author: z.strictObject({ name: z.string(), email: z.string(), url: z.string() }).partial(),
  homepage: z.string(),
  repository: z.string(),
  license: z.string(),
  keywords: z.array(z.string()),
  extensions: z.unknown(),
};

const STDIO = ["type", "command", "args", "env", "cwd"];
const HTTP = ["type", "url", "headers"];

/** `./x`, `${PLUGIN_ROOT}/x` or `${PLUGIN_DATA}/x` as an absolute path; undefined for any other form, and for one that leads out. */
function folderIn(cwd: unknown, { folder, data = folder }: Base): string | undefined {
  if (cwd === undefined) return folder;
  if (typeof cwd !== "string") return undefined;
  const [, own, kept, rest = ""] = /^(?:(\.|\$\{PLUGIN_ROOT\})|(\$\{PLUGIN_DATA\}))(\/.*)?$/s.exec(cwd) ?? [];
  const root = own === undefined ? kept && data : folder;
  if (root === undefined || cwd === ".") return undefined;
  const path = resolve(root, `.${rest}`);
  return isWithin(path, root) ? path : undefined;
}

function whyNoStdio({ command, env, cwd }: Data, base: Base): string | undefined {
  if (typeof command !== "string" || command === "") return "its command is no text";
  const isOwn = command.startsWith("./");
  if (!isOwn && /[/\\]/.test(command))
    return "its command is neither a bare name nor a path that begins with ./";
  if (isOwn && !isWithin(resolve(base.folder, command), base.folder))
    return "its command leads out of the plugin";
  if (Object.keys(objectAt(env)).some((name) => /^PLUGIN_(ROOT|DATA)$/i.test(name)))
    return "its env sets PLUGIN_ROOT or PLUGIN_DATA";
  return folderIn(cwd, base) === undefined
    ? "its cwd is no path in the plugin that begins with ./, ${PLUGIN_ROOT} or ${PLUGIN_DATA}"
    : undefined;
}

function whyNoHttp({ url, headers }: Data): string | undefined {
  const at = typeof url === "string" ? URL.parse(url) : null;
  if (!at || !/^https?:$/.test(at.protocol)) return "its url is no http or https URL";
  if (at.username !== "" || at.password !== "" || at.hash !== "")
    return "its url holds a user, a password or a fragment";
  if (at.protocol === "http:" && !/^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(at.hostname))
    return "its url is http to another machine";
  const names = Object.keys(objectAt(headers)).map((name) => name.toLowerCase());
  return new Set(names).size === names.length ? undefined : "it has a header twice";
}

/** Section 7.2.1: each entry is one of three closed variants. */
function whyUnusable(entry: Data, base: Base): string | undefined {
  const { type } = entry;
  const known = type === "stdio" ? STDIO : type === "streamable-http" || type === "sse" ? HTTP : undefined;
  if (!known) return 'its type is not "stdio", "streamable-http" or "sse"';
  const other = Object.keys(entry).find((key) => !known.includes(key));
  if (other !== undefined) return `Agent Plugins have no key ${other.slice(0, 40)} in such a server`;
  return type === "stdio" ? whyNoStdio(entry, base) : whyNoHttp(entry);
}

/** Section 7.2.2: then no server of the plugin counts. */
function refusedDocument({ $schema: schema, mcpServers, ...others }: Data): string | undefined {
  if (schema !== `${SCHEMAS}/mcp.schema.json`) return `its $schema is not ${SCHEMAS}/mcp.schema.json`;
  if (!isObject(mcpServers)) return `mcpServers is ${kindOf(mcpServers)}, not an object`;
  const [other] = Object.keys(others);
  return other === undefined ? undefined : `mcp.json of an Agent Plugin has no key ${other.slice(0, 40)}`;
}

const variables = (root: string, data: string) => ({ [root]: `\${${root}}`, [data]: `\${${data}}` });

function agentFormat(prefix: string, base: Base): Format {
  const values: Record<string, string> = { PLUGIN_ROOT: base.folder, PLUGIN_DATA: base.data ?? "" };
  return {
    name: serverNameIn(prefix),
    groups: ({ mcpServers }) => [{ path: ["mcpServers"], servers: mcpServers }],
    convert: (entry) =>
      entry.type === "stdio"
        ? {
            ...entry,
            command:
              typeof entry.command === "string" && entry.command.startsWith("./")
                ? join(base.folder, entry.command)
                : entry.command,
            env: isObject(entry.env ?? {})
              ? { ...objectAt(entry.env), ...variables("PLUGIN_ROOT", "PLUGIN_DATA") }
              : entry.env,
            cwd: folderIn(entry.cwd, base),
          }
        : entry,
    // Section 9.2: once, and nowhere else.
    syntax: () => ({
      pattern: /\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}/g,
      keys: ["args", "env"],
      fill: (variable) => ({ value: values[variable] ?? "" }),
    }),
    refuses: refusedDocument,
    unusable: (entry) => whyUnusable(entry, base),
  };
}

/** `inManifest`: the servers stand in plugin.json itself, below this path. */
function claudeFormat(prefix: string, base: Base, inManifest: readonly string[] = []): Format {
  const claude = DIALECTS["claude-code"];
  return {
    name: serverNameIn(prefix),
    groups: (root) => {
      const step = (value: unknown, key: string): unknown =>
        Array.isArray(value) ? value[Number(key)] : objectAt(value)[key];
      const path = [...inManifest];
      const { $schema: _, ...bare } = objectAt(path.reduce(step, root));
      return isObject(bare.mcpServers)
        ? [{ path: [...path, "mcpServers"], servers: bare.mcpServers }]
        : [{ path, servers: bare }];
    },
    convert: (entry, root, facts) => ({
      ...claude.convert(entry, root, facts),
      ...(entry.command === undefined || !isObject(entry.env ?? {})
        ? {}
        : { env: { ...variables("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"), ...objectAt(entry.env) } }),
    }),
    syntax: (facts, key) => {
      const values: Record<string, string> = {
        CLAUDE_PLUGIN_ROOT: base.folder,
        CLAUDE_PLUGIN_DATA: base.data ?? "",
        CLAUDE_PROJECT_DIR: facts.cwd,
      };
      const written = claude.syntax?.(facts, key);
      return {
        pattern: /\$\{([A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?)\}/g,
        ...written,
        fill: (variable) => {
          const [name = ""] = variable.split(":-");
          return Object.hasOwn(values, name) ? { value: values[name] ?? "" } : written?.fill(variable);
        },
      };
    },
    // What the person told Claude Code, partly in its own store.
    foreign: /\$\{(user_config\.[^}]*)\}/g,
    unusable: (entry) => claude.unusable?.(entry),
  };
}

/** Section 4.1: what the entry names in the plugin, or in its folder for data, lies there when all links are followed. */
const stays =
  ({ folder, data = folder }: Base) =>
  async ({ target }: ServerDefinition): Promise<boolean> => {
    if (target.kind !== "stdio") return target.kind === "http";
    const { command, cwd = folder } = target;
    const kept = await realOf(data);
    if (isWithin(command, folder) && command !== "" && !(await staysIn(folder, resolve(folder, command))))
      return false;
    return isWithin(cwd, data) && data !== folder ? staysIn(kept ?? data, cwd) : staysIn(folder, cwd);
  };

const MANIFEST_FILE = "plugin.json";
const CLAUDE_MANIFEST = join(".claude-plugin", "plugin.json");

function baseOf({ folder, data }: Plugin, name: string, { facts }: Loader): Base {
  const hash = createHash("sha256").update(folder).digest("hex").slice(0, 8);
  return {
    folder,
    data: data ?? join(facts.agentDir, "mcp-plugin-data", `${plainName(name, "plugin")}-${hash}`),
  };
}

async function readAgentPlugin(
  plugin: Plugin,
  { root, document }: JsonObject,
  loader: Loader,
): Promise<ReadPackage> {
  const file = join(plugin.folder, MANIFEST_FILE);
  const { mistakes } = check(MANIFEST, root);
  const missing = ["$schema", "name"].filter((key) => !Object.hasOwn(root, key));
  const problems = [
    ...missing.map((key) =>
      packageProblem(file, { at: document.at([]) }, `${key} is missing, so the plugin is not used`),
    ),
    ...toProblems(document, file, [], mistakes).map((problem) => ({
      ...problem,
      severity: "warning" as const,
    })),
  ];
  if (root.extensions !== undefined && !isObject(root.extensions))
    problems.push(
      packageProblem(
        file,
        { at: document.at(["extensions"]), path: ["extensions"] },
        "is not an object, and is left out",
      ),
    );
  const { name } = root;
  const isFatal = missing.length > 0 || mistakes.some(({ severity }) => severity === "error");
  if (isFatal || typeof name !== "string") return { servers: [], problems, files: [file], isThere: true };
  const base = baseOf(plugin, name, loader);
  const servers = join(plugin.folder, "mcp.json");
  const read = await readServers(
    plugin.folder,
    {
      source: { ...sourceOf(servers, "package"), base },
      format: agentFormat(plainName(name, "plugin"), base),
      isIn: stays(base),
    },
    loader,
  );
  return { ...read, problems: [...problems, ...read.problems], files: [file, ...read.files], isThere: true };
}

/** What `mcpServers` of a Claude plugin's manifest names: files, and servers in the manifest itself. */
function namedByManifest(
  plugin: Plugin,
  { root, document }: JsonObject,
): { files: string[]; inline: string[][]; problems: ReadPackage["problems"] } {
  const file = join(plugin.folder, CLAUDE_MANIFEST);
  const named = { files: [] as string[], inline: [] as string[][], problems: [] as ReadPackage["problems"] };
  const { mcpServers: written } = root;
  if (written === undefined) return named;
  const all: [string[], unknown][] = Array.isArray(written)
    ? written.map((one, i) => [["mcpServers", String(i)], one])
    : [[["mcpServers"], written]];
  const report = (path: string[], message: string, remedy?: string): void =>
    void named.problems.push(packageProblem(file, { at: document.at(path), path }, message, remedy));
  if (all.length > PACKAGE_SERVER_FILES)
    report(
      ["mcpServers"],
      `has ${all.length.toLocaleString("en")} items; the first ${PACKAGE_SERVER_FILES} are used`,
    );
  for (const [path, one] of all.slice(0, PACKAGE_SERVER_FILES)) {
    if (isObject(one)) named.inline.push(path);
    else if (typeof one !== "string")
      report(path, `expected a path or an object of servers, found ${kindOf(one)}`);
    else if (isBundle(one))
      report(path, "names a bundle of a server, and bundles are not installed here", UNPACK);
    else if (/^[a-z]+:\/\//i.test(one))
      report(path, "names an address, and files of servers are not downloaded");
    else if (!isWithin(resolve(plugin.folder, one), plugin.folder))
      report(path, "the path leads out of the plugin");
    else named.files.push(resolve(plugin.folder, one));
  }
  return named;
}

async function readClaudePlugin(
  plugin: Plugin,
  manifest: JsonObject | undefined,
  loader: Loader,
): Promise<ReadPackage> {
  const name = plugin.name ?? manifest?.root.name;
  const written = typeof name === "string" && name !== "" ? name : basename(plugin.folder);
  const base = baseOf(plugin, written, loader);
  const prefix = plainName(written, "plugin");
  const named = manifest ? namedByManifest(plugin, manifest) : { files: [], inline: [], problems: [] };
  const own = join(plugin.folder, CLAUDE_MANIFEST);
  const usual = join(plugin.folder, ".mcp.json");
  const read = (file: string, path?: readonly string[]): Promise<ReadPackage> =>
    readServers(
      plugin.folder,
      { source: { ...sourceOf(file, "package"), base }, format: claudeFormat(prefix, base, path) },
      loader,
    );
  // The manifest counts before the usual file.
  const all = await Promise.all([
    ...named.inline.map((path) => read(own, path)),
    ...named.files.map(async (file) => {
      const found = await read(file);
      return found.isThere
        ? found
        : { ...found, problems: [packageProblem(own, {}, `mcpServers names ${file}, which does not exist`)] };
    }),
    ...(named.files.includes(usual) ? [] : [read(usual)]),
  ]);
  return {
    servers: all.flatMap(({ servers }) => servers),
    problems: [...named.problems, ...all.flatMap(({ problems }) => problems)],
    files: [...(manifest ? [own] : []), ...all.flatMap(({ files }) => files)],
    isThere: manifest !== undefined || all.some(({ isThere }) => isThere),
  };
}

/** The manifest of a plugin, unless a link in its place leads out. */
async function readManifest(folder: string, name: string, loader: Loader) {
  const file = join(folder, name);
  if (!(await staysIn(folder, file)))
    return { value: undefined, problems: [packageProblem(file, {}, LEADS_OUT)] };
  return readObject(loader, sourceOf(file, "package"));
}

/** The servers of a plugin. `isThere`: its folder holds a plugin. Never throws. */
export async function readPlugin(plugin: Plugin, loader: Loader): Promise<ReadPackage> {
  const { folder, isClaude } = plugin;
  const [agent, claude] = await Promise.all([
    isClaude ? { value: undefined, problems: [] } : readManifest(folder, MANIFEST_FILE, loader),
    readManifest(folder, CLAUDE_MANIFEST, loader),
  ]);
  const problems = [...agent.problems, ...claude.problems];
  const isAgent =
    agent.value && (claude.value === undefined || String(agent.value.root.$schema).startsWith(AGENT_PLUGINS));
  const read =
    agent.value && isAgent
      ? await readAgentPlugin(plugin, agent.value, loader)
      : await readClaudePlugin(plugin, claude.value, loader);
  return { ...read, problems: [...problems, ...read.problems], isThere: read.isThere || problems.length > 0 };
}
