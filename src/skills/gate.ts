/**
 * What waits for the person while a skill of a server stands in the conversation (SEP-2640, "Security Considerations"): tools
 * that run code and skills of another server, once in a session for each skill, and reads of another server's resources, each
 * time. Fails closed: without a person, or if the dialog is closed, the call does not run.
 */
import type { CatalogTool } from "../catalog/catalog.ts";
import type { BlockedCall, PiContext } from "../pi/api.ts";
import { serverName } from "../report/server-name.ts";
import { type LoadedSkill, skillKeyOf } from "../shared/protocol/calls.ts";
import { isObject } from "../shared/protocol/values.ts";
import { counted } from "../shared/text/amounts.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { orAborted } from "../ui/dialog.ts";
import { askToRun } from "../ui/skills/questions.ts";
import { LOADED_ENTRY, RUN_ENTRY, type SkillsHost, type Standing, type ToolAboutToRun } from "./standing.ts";
import { runsWhenWritten } from "./written-path.ts";

const BUILT_IN = "builtin:";
/** Pi's own tools that run no program. A tool of another extension with such a name is not one of them. */
const HARMLESS = new Set(["read", "edit", "write", "grep", "find", "ls", "codemode", "tool_search"]);
/** Words of a tool's name that say that the tool runs what it gets. Whoever wrote them is another server than the skill's. */
const RUNS = new Set(
  "bash sh zsh shell powershell pwsh cmd command commands exec execute eval evaluate run script scripts terminal process spawn python node javascript repl code".split(
    " ",
  ),
);

export interface Judging extends SkillsHost {
  standing: Standing;
}

const isSkill = (value: unknown): value is LoadedSkill =>
  isObject(value) && ["server", "uri", "name", "content"].every((key) => typeof value[key] === "string");

const dataOf = (entry: unknown, type: string): unknown =>
  isObject(entry) && entry.type === "custom" && entry.customType === type ? entry.data : undefined;

/** Reads the branch: what the model reads of it, and what the person allowed in this session, also before a compaction. */
function read({ sessionManager }: PiContext, standing: Standing): void {
  if (standing.isKnown) return;
  standing.active.clear();
  for (const entry of sessionManager.buildContextEntries()) {
    const skill = dataOf(entry, LOADED_ENTRY);
    if (isSkill(skill)) standing.active.set(skillKeyOf(skill), skill);
  }
  const session = sessionManager.getSessionId();
  for (const entry of sessionManager.getBranch()) {
    const run = dataOf(entry, RUN_ENTRY);
    // A fork has the entries of another session, whose yes does not count in it.
    if (isObject(run) && run.session === session && typeof run.skill === "string")
      standing.granted.add(`${session} ${run.skill}`);
  }
  standing.isKnown = true;
}

/** For example `run` and `shell` of `runShell`, `RUNShell` and `run_shell`. */
const wordsOf = (name: string): string[] =>
  name
    .replace(/([a-z])([A-Z])|([A-Z])([A-Z][a-z])/g, "$1$3 $2$4")
    .toLowerCase()
    .split(/[^a-z]+/);

/** By its name alone: a hint of the server, which may lie, lets nothing run unasked. */
const runsCode = ({ tool }: CatalogTool): boolean => wordsOf(tool).some((word) => RUNS.has(word));

/** Whether Pi's own tool runs nothing, now or once a file is written. */
async function isHarmless(
  { toolName, input: { path } }: ToolAboutToRun,
  { cwd }: PiContext,
  { agentDir, catalog }: Judging,
): Promise<boolean> {
  if (!HARMLESS.has(toolName)) return false;
  if ((toolName !== "write" && toolName !== "edit") || typeof path !== "string") return true;
  return !(await runsWhenWritten(path, { cwd, agentDir, files: catalog().settings.files }));
}

/** The skills that the call must wait for; `each`: the person is asked at each such call. */
async function waitsFor(
  call: ToolAboutToRun,
  tool: CatalogTool | undefined,
  { ctx, judging }: { ctx: PiContext; judging: Judging },
): Promise<{ skills: LoadedSkill[]; each: boolean }> {
  const { pi, standing } = judging;
  const skills = [...standing.active.values()];
  if (tool) {
    const others = skills.filter(({ server }) => server !== tool.server.name);
    if (tool.kind === "resource") return { skills: others, each: true };
    // A server's own tools run at the server. Another server's skill may be one that no longer asks by itself.
    return { skills: tool.kind === "skill" || runsCode(tool) ? others : [], each: false };
  }
  const known = pi.getAllTools().find(({ name }) => name === call.toolName);
  const isOwn = known?.sourceInfo?.path.startsWith(BUILT_IN) === true;
  const runsNothing = isOwn
    ? await isHarmless(call, ctx, judging)
    : known?.annotations?.readOnlyHint === true;
  return { skills: runsNothing ? [] : skills, each: false };
}

const NAME_CHARS = 200;
const SKILL_CHARS = 64;

/** Skills that a question names: more of them would push its choices off a small screen. */
const NAMED = 2;

function named(skills: readonly LoadedSkill[]): string {
  const names = skills.map(
    ({ name, server }) => `${oneLine(name, SKILL_CHARS)} of the MCP server ${serverName(server)}`,
  );
  const more = names.length - NAMED;
  return more <= 0
    ? names.join(" and ")
    : `${names.slice(0, NAMED).join(", ")} and ${counted(more, "more skill")}`;
}

const block = (reason: string): BlockedCall => ({ block: true, reason });

/** Undefined: the call may run. */
export async function judge(
  call: ToolAboutToRun,
  ctx: PiContext,
  judging: Judging,
): Promise<BlockedCall | undefined> {
  const { standing, catalog, ownTool, pi, inTurn, log } = judging;
  read(ctx, standing);
  const session = ctx.sessionManager.getSessionId();
  const own = ownTool(call.toolName);
  const { skills, each } = await waitsFor(call, own, { ctx, judging });
  const mayRun = (server: string): boolean =>
    catalog().servers.some(({ name, skillsRun }) => name === server && skillsRun === true);
  const open = (): LoadedSkill[] =>
    each
      ? skills
      : skills.filter(
          (skill) => !mayRun(skill.server) && !standing.granted.has(`${session} ${skillKeyOf(skill)}`),
        );
  if (open().length === 0) return undefined;
  const tool = own
    ? `${oneLine(own.tool, NAME_CHARS)} of the MCP server ${serverName(own.server.name)}`
    : oneLine(call.toolName, NAME_CHARS);
  const why = `${tool} was not run: the skill ${named(open())} is in the conversation, and what it leads to needs the user's yes`;
  if (!ctx.hasUI) {
    const how = each
      ? ""
      : ' Only the user can allow it: in a session with a person, or by "skills": "allow" of that server.';
    return block(`${why}, and no one can be asked in this mode of Pi.${how}`);
  }
  // Pi waits for this answer before it ends a run, so the end of the run must end the question.
  const { signal } = ctx;
  const ask = async (): Promise<boolean> => {
    // The answer to the question before may count for this one.
    const asked = open();
    if (asked.length === 0) return true;
    if (signal?.aborted) return false;
    const yes = await askToRun(ctx, { ...call, tool, skills: named(asked), each }, signal);
    log(`the user's answer to ${tool} beside the skill ${named(asked)}: ${yes ? "yes" : "no"}`);
    if (!yes || each) return yes;
    for (const skill of asked) {
      const key = skillKeyOf(skill);
      standing.granted.add(`${session} ${key}`);
      pi.appendEntry(RUN_ENTRY, { session, skill: key });
    }
    return true;
  };
  if (await orAborted(inTurn(ask), signal)) return undefined;
  if (signal?.aborted) return block(`${why}, and the run ended before an answer.`);
  return block(`${why}, and the user said no. Do not try it again unless the user asks for that.`);
}
