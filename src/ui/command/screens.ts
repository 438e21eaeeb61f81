/** What each subcommand of `/mcp` does: a file of its own in the build, which main loads with the first command. */
import type { PiContext } from "../../pi/api.ts";
import { guardStale, notify } from "../../pi/extension.ts";
import { renderResources } from "../../report/resources.ts";
import { serverName } from "../../report/server-name.ts";
import { renderStats } from "../../report/stats.ts";
import { absentText, renderStatus, renderTools, unknownText } from "../../report/status.ts";
import { renderTool, unknownToolText } from "../../report/tool.ts";
import { describeThrown } from "../../shared/protocol/errors.ts";
import { editConfig } from "../edit-config.ts";
import { openPanel } from "../panel/panel.ts";
import { askedKey, runSetup } from "../setup/setup.ts";
import { runDoctor } from "./doctor.ts";
import type { McpCommandHost } from "./host.ts";
import { splitWord, subcommand, WORDS } from "./words.ts";

const USAGE = `Usage: /mcp ${Object.entries(WORDS)
  .map(([word, rest]) => `${word} ${rest}`.trim())
  .join(" | ")}`;
const PROJECT = "--project";

/** Separates `--project` from the server's name in the text after a subcommand. */
function readOptions(rest: string | undefined): { server: string | undefined; project: boolean } {
  const words = (rest ?? "").split(/\s+/).filter((word) => word !== "");
  const server = words.filter((word) => word !== PROJECT).join(" ");
  return { server: server === "" ? undefined : server, project: words.includes(PROJECT) };
}

async function tool(name: string, host: McpCommandHost): Promise<string> {
  const found = host.catalog().get(name);
  if (!found) return unknownToolText(name);
  const declared = await host.ask("declaredSchema", { server: found.server.name, tool: found.tool });
  return renderTool(found, declared);
}

/** Pi keeps a cell free on both sides of a notice. In other modes than the TUI no line is too wide. */
const columnsOf = ({ mode }: PiContext): number =>
  mode === "tui" ? (process.stdout.columns ?? 80) - 2 : Number.MAX_SAFE_INTEGER;

/** Why a configured server does not run; undefined if it runs, is unknown, or none is named. */
async function absent(server: string | undefined, host: McpCommandHost): Promise<string | undefined> {
  if (server === undefined || host.servers().some(({ name }) => name === server)) return undefined;
  return absentText(server, await host.ask("status", {}));
}

/** Pi takes no other command while one runs, and npm may fetch a package for minutes. */
const RECONNECT_MS = 4_000;

/** Without a person it waits to the end. */
async function reconnect(server: string | undefined, ctx: PiContext, host: McpCommandHost): Promise<void> {
  const done = host
    .ask("reconnect", { server })
    .then(() => host.ask("status", {}))
    .then((report) => notify(ctx, renderStatus(report), "info"));
  if (!ctx.hasUI) return done;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), RECONNECT_MS).unref();
  });
  if ((await Promise.race([done, late]).finally(() => clearTimeout(timer))) !== "late") return;
  // The session may be another one by then, and Pi refuses its old objects.
  done.catch((error: unknown) =>
    guardStale(
      () => notify(ctx, `/mcp: ${describeThrown(error)}`, "error"),
      () => undefined,
    ),
  );
  const waits = host
    .servers()
    .flatMap(({ name, waits: text }) =>
      text && (server === undefined || name === server) ? [`${serverName(name)}: ${text}.`] : [],
    );
  notify(ctx, [...waits, "It goes on, and its end is told. /mcp shows it."].join(" "), "info");
}

async function run(args: string, ctx: PiContext, host: McpCommandHost): Promise<void> {
  const { word: written, rest } = splitWord(args.trim());
  const word = subcommand(written);
  if (await runSetup(word, (rest ?? "").trim(), ctx, host)) return;
  const { server, project } = readOptions(rest);
  if (word !== "" && !Object.hasOwn(WORDS, word))
    return notify(ctx, `/mcp ${word} is not known. ${USAGE}`, "warning");
  const switches = word === "enable" || word === "disable";
  const needsServer = switches || word === "logout" || word === "tool";
  const takesServer = needsServer || ["tools", "resources", "reconnect", "auth", "doctor"].includes(word);
  const takesProject = switches || word === "edit";
  if (
    (server !== undefined && !takesServer) ||
    (needsServer && server === undefined) ||
    (project && !takesProject)
  ) {
    return notify(ctx, USAGE, "warning");
  }
  if (written === "" && ctx.mode === "tui") return openPanel(ctx, host);
  switch (word || "status") {
    case "status":
      return notify(ctx, renderStatus(await host.ask("status", {})), "info");
    case "tools":
      return notify(
        ctx,
        (await absent(server, host)) ?? renderTools(host.catalog(), host.servers(), server),
        "info",
      );
    case "resources": {
      const known = await host.ask("listResources", { server });
      const names = host.servers().map(({ name }) => name);
      const isUnknown = server !== undefined && known.length === 0;
      const text = (await absent(server, host)) ?? (isUnknown ? unknownText(server, names) : undefined);
      return notify(ctx, text ?? renderResources(known), "info");
    }
    case "tool":
      return notify(ctx, await tool(server ?? "", host), "info");
    case "reconnect":
      return reconnect(server, ctx, host);
    case "auth":
      return askedKey(await host.signIn(server), ctx, host);
    case "logout": {
      const { text } = await host.ask("signOut", { server: server ?? "" });
      return notify(ctx, text, "info");
    }
    case "enable":
    case "disable": {
      const enabled = word === "enable";
      const { file, but } = await host.ask("setEnabled", { server: server ?? "", enabled, project });
      return notify(ctx, [`${server} is ${word}d in ${file}.`, ...(but ? [but] : [])].join(" "), "info");
    }
    case "edit":
      return notify(ctx, await editConfig(project, ctx, host.ask), "info");
    case "stats":
      return notify(ctx, renderStats(await host.ask("stats", {}), columnsOf(ctx)), "info");
    case "doctor":
      return notify(ctx, await runDoctor(server, host, columnsOf(ctx)), "info");
    case "trust":
      await host.askConsents();
      return notify(ctx, renderStatus(await host.ask("status", {})), "info");
  }
}

/** `args`: the text after `/mcp`. A failure becomes an error notice. */
export async function runMcp(args: string, ctx: PiContext, host: McpCommandHost): Promise<void> {
  try {
    await run(args, ctx, host);
  } catch (error) {
    notify(ctx, `/mcp: ${describeThrown(error)}`, "error");
  }
}
