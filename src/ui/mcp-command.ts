/** The `/mcp` command: which words it takes, their completion, and what each does. */
import type { Catalog } from "../catalog/catalog.ts";
import type { PiCommand, PiContext } from "../host.ts";
import { describeError, messageOf, ThreadsError } from "../protocol/errors.ts";
import type { ServerStatus } from "../protocol/types.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { notify } from "./notices.ts";
import { renderStats } from "./stats-table.ts";
import { absentText, renderStatus, renderTools } from "./status-text.ts";

export interface McpCommandHost {
  ask: Runtime["ask"];
  /** Asks again for the project's servers that were refused or put off. */
  askConsents(): Promise<void>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
}

/** Subcommand -> what may follow it. */
const WORDS = {
  status: "",
  tools: "[server]",
  reconnect: "[server]",
  enable: "<server> [--project]",
  disable: "<server> [--project]",
  edit: "[--project]",
  trust: "",
  stats: "",
} as const;
const USAGE = `Usage: /mcp ${Object.entries(WORDS)
  .map(([word, rest]) => `${word} ${rest}`.trim())
  .join(" | ")}`;
const PROJECT = "--project";
const BOM = "\uFEFF";

type Completion = { value: string; label: string };

/** The first word, and everything behind it: a server's name may hold spaces. */
function split(args: string): { word: string; rest: string | undefined } {
  const at = args.search(/\s/);
  return at === -1
    ? { word: args, rest: undefined }
    : { word: args.slice(0, at), rest: args.slice(at).trimStart() };
}

/** Completions of what stands behind `/mcp `: a subcommand, then a server. */
export function completeMcp(prefix: string, servers: readonly string[]): Completion[] | null {
  const { word, rest } = split(prefix.trimStart());
  const takesServer = Object.hasOwn(WORDS, word) && WORDS[word as keyof typeof WORDS].includes("server");
  const values =
    rest === undefined
      ? Object.keys(WORDS).filter((candidate) => candidate.startsWith(word))
      : takesServer
        ? servers.filter((name) => name.startsWith(rest)).map((name) => `${word} ${name}`)
        : [];
  return values.length > 0 ? values.map((value) => ({ value, label: value })) : null;
}

/** Takes `--project` out of the words behind a subcommand. */
function readOptions(rest: string | undefined): { server: string | undefined; project: boolean } {
  const words = (rest ?? "").split(/\s+/).filter((word) => word !== "");
  const server = words.filter((word) => word !== PROJECT).join(" ");
  return { server: server === "" ? undefined : server, project: words.includes(PROJECT) };
}

async function edit(project: boolean, ctx: PiContext, host: McpCommandHost): Promise<void> {
  const { file, text: before } = await host.ask("readConfig", { project });
  // An editor may show a BOM as a character, or drop it.
  const bom = before.startsWith(BOM) ? BOM : "";
  const text = before.slice(bom.length);
  if (!ctx.hasUI) return notify(ctx, `Edit ${file}; the change is applied when it is saved.`, "info");
  const edited = await ctx.ui.editor(file, text === "" ? '{\n  "mcpServers": {}\n}\n' : text);
  if (edited === undefined || edited === text) return notify(ctx, `${file} is as it was.`, "info");
  await host.ask("writeConfig", { project, before, text: bom + edited });
  notify(ctx, `${file} is written.`, "info");
}

/** Pi keeps a cell free on both sides of a notice. Where there is no screen of ours nothing is too wide. */
const columnsOf = ({ mode }: PiContext): number =>
  mode === "tui" ? (process.stdout.columns ?? 80) - 2 : Number.MAX_SAFE_INTEGER;

async function run(args: string, ctx: PiContext, host: McpCommandHost): Promise<void> {
  const { word, rest } = split(args.trim());
  const { server, project } = readOptions(rest);
  if (word !== "" && !Object.hasOwn(WORDS, word))
    return notify(ctx, `/mcp ${word} is not known. ${USAGE}`, "warning");
  const needsServer = word === "enable" || word === "disable";
  const takesServer = needsServer || word === "tools" || word === "reconnect";
  const takesProject = needsServer || word === "edit";
  if (
    (server !== undefined && !takesServer) ||
    (needsServer && server === undefined) ||
    (project && !takesProject)
  ) {
    return notify(ctx, USAGE, "warning");
  }
  switch (word || "status") {
    case "status":
      return notify(ctx, renderStatus(await host.ask("status", {})), "info");
    case "tools": {
      const servers = host.servers();
      const isAbsent = server !== undefined && !servers.some(({ name }) => name === server);
      const absent = isAbsent ? absentText(server, await host.ask("status", {})) : undefined;
      return notify(ctx, absent ?? renderTools(host.catalog(), servers, server), "info");
    }
    case "reconnect":
      await host.ask("reconnect", { server });
      return notify(ctx, renderStatus(await host.ask("status", {})), "info");
    case "enable":
    case "disable": {
      const enabled = word === "enable";
      const { file, but } = await host.ask("setEnabled", { server: server ?? "", enabled, project });
      return notify(ctx, [`${server} is ${word}d in ${file}.`, ...(but ? [but] : [])].join(" "), "info");
    }
    case "edit":
      return edit(project, ctx, host);
    case "stats":
      return notify(ctx, renderStats(await host.ask("stats", {}), columnsOf(ctx)), "info");
    case "trust":
      await host.askConsents();
      return notify(ctx, renderStatus(await host.ask("status", {})), "info");
  }
}

export function createMcpCommand(host: McpCommandHost): PiCommand {
  return {
    description: "MCP servers: state, tools, reconnect, enable, disable, edit, trust, stats",
    getArgumentCompletions: (prefix) =>
      completeMcp(
        prefix,
        host.servers().map((server) => server.name),
      ),
    handler: async (args, ctx) => {
      try {
        await run(args, ctx, host);
      } catch (error) {
        const known = error instanceof ThreadsError ? error : { message: messageOf(error) };
        notify(ctx, `/mcp: ${describeError(known)}`, "error");
      }
    },
  };
}
