/**
 * Owns: what the files of a program say of servers by their names, laid over each server once, when all files are known. The number
 * of rules, and of the comparisons that they cost, is bounded for all files together: a project can have many files, each with many
 * servers. Must not: read files, or know how a program writes its rules.
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { isProject, isUsersOwn, type ServerDefinition, withReplaced } from "../entry/definition.ts";
import { applyOverride, type Override } from "../entry/override.ts";
import { inBoth } from "../entry/patterns.ts";
import { shownKey } from "../files/files.ts";
import type { ConfigSource } from "../files/sources.ts";
import { OFF, objectAt, type Rules, type RulesCost } from "./format.ts";

/** What one file says. */
export interface NamedRules extends Rules {
  source: ConfigSource;
}

/** Comparisons for all servers of one program: about a second. */
const MOST_STEPS = 500_000;

/** Comparisons in one turn of the event loop: some milliseconds. */
const TURN_STEPS = 2_000;

/** What either takes away is taken away, and what either asks about is asked about. */
function joined(below: Override, above: Override): Override {
  const excluded = [...(below.excludeTools ?? []), ...(above.excludeTools ?? [])];
  const included = below.includeTools && above.includeTools && inBoth(below.includeTools, above.includeTools);
  const asks = Object.entries(objectAt(below.approve)).filter(([, rule]) => rule !== "allow");
  const approve = above.approve && { ...objectAt(above.approve), ...Object.fromEntries(asks) };
  return {
    ...below,
    ...above,
    ...(below.enabled === false && OFF),
    ...(excluded.length > 0 && { excludeTools: [...new Set(excluded)] }),
    ...(included && { includeTools: included }),
    ...(approve && { approve: approve as NonNullable<Override["approve"]> }),
  };
}

/** A rule that cannot be laid over the server switches it off. */
function laidOver(base: ServerDefinition, rules: Override, by: ConfigSource): ServerDefinition {
  const { excludeTools, includeTools, approve } = base.raw as Override;
  const below = {
    ...(excludeTools && { excludeTools }),
    ...(includeTools && rules.includeTools && { includeTools }),
    ...(rules.approve && { approve }),
  };
  const over = joined(below as Override, rules);
  const ruled = applyOverride(base, over, by);
  return ruled === base ? applyOverride(base, OFF, by) : ruled;
}

/** What the files of one side, the user's or the project's, say of a server, and the last of them. */
interface Side {
  rules: Override;
  source: ConfigSource;
}

type Apply = (server: ServerDefinition) => ServerDefinition;

/** Lays what the files say over servers: of its own side first, the user's or the project's. A name is looked for once. */
function laying(files: readonly NamedRules[]): Apply {
  const known = new Map<string, { said: Side[]; users?: Side; projects?: Side }>();
  const sideOf = (said: Side[]): Side | undefined => {
    const last = said.at(-1);
    return last && { rules: said.map((one) => one.rules).reduce(joined), source: last.source };
  };
  const look = (name: string) => {
    const said = files.flatMap(({ of, source }) => {
      const rules = of(name);
      return rules ? [{ rules, source }] : [];
    });
    const [users, projects] = [false, true].map((is) =>
      sideOf(said.filter(({ source }) => isProject(source.origin) === is)),
    );
    const found = { said, ...(users && { users }), ...(projects && { projects }) };
    known.set(name, found);
    return found;
  };
  const apply: Apply = (base) => {
    const { said, users, projects } = known.get(base.name) ?? look(base.name);
    const replaced = base.replaced && apply(base.replaced);
    let server = base;
    for (const side of isProject(base.origin) ? [projects, users] : [users, projects])
      if (side) server = laidOver({ ...server, replaced: undefined }, side.rules, side.source);
    const others = said.map(({ source }) => source.file).filter((file) => file !== base.file);
    return { ...server, overrides: [...new Set([...base.overrides, ...others])], replaced };
  };
  return apply;
}

/** The file with which there are more rules than may be, and why. `servers`: their names. */
function overflow(
  servers: readonly string[],
  files: readonly NamedRules[],
): { source: ConfigSource; message: string } | undefined {
  const words = (number: number): string => number.toLocaleString("en");
  const listedBefore = servers.map(() => 0);
  let [count, steps] = [0, 0];
  for (const { source, ...rules } of files) {
    count += rules.count;
    if (count > LIMITS.toolRules)
      return {
        source,
        message: `the files of its program have more than ${words(LIMITS.toolRules)} rules for tools`,
      };
    for (const [at, name] of servers.entries()) {
      const { steps: own, listed } = costOf(rules, name);
      const before = listedBefore[at] ?? 0;
      steps += own + 2 * listed * before;
      listedBefore[at] = before + listed;
      if (steps > MOST_STEPS)
        return {
          source,
          message: `rules for tools and ${words(servers.length)} servers take more than ${words(MOST_STEPS)} comparisons`,
        };
    }
  }
  return undefined;
}

const costOf = ({ cost }: Rules, name: string): RulesCost => cost?.(name) ?? { steps: 1, listed: 0 };

const lostTool = ({ file }: ConfigSource, { name }: ServerDefinition, tool: string): ConfigProblem => ({
  ...{ severity: "warning", file, line: 1, column: 1, key: shownKey([name, tool]) },
  message:
    "is an exception from what a rule of the file denies or asks about; here that rule counts for it as well",
  remedy: "Deny less there, name the tools one by one, or write the server into your own mcp.json.",
});

interface RulesOver {
  /** A server with all that the files say of it. */
  apply: Apply;
  /** Complete when all servers have been asked for. */
  problems: ConfigProblem[];
  /** What one server costs. */
  steps: (name: string) => number;
}

const stepsOf = (files: readonly NamedRules[], name: string): number =>
  files.reduce((sum, rules) => sum + costOf(rules, name).steps, 0);

/** If there are too many rules: of the user's, or only that a server is off. */
const STEPS_OF_FEW = 100;

/** With each exception that is lost told once for its file. */
function telling(apply: Apply, files: readonly NamedRules[], problems: ConfigProblem[]): Apply {
  const untold = new Set(files);
  const looked = new Set<string>();
  return (server) => {
    const { size } = looked;
    if (looked.add(server.name).size === size) return apply(server);
    for (const one of untold) {
      const lost = one.lost?.(server.name);
      if (lost === undefined) continue;
      untold.delete(one);
      problems.push(lostTool(one.source, server, lost));
    }
    return apply(server);
  };
}

const isUsers = ({ origin }: ConfigSource): boolean => !isProject(origin);

/** Whoever switches a server on of which the user's rules are not known, or has a yes for it: none of its tools is there. */
const UNRULED: Override = { ...OFF, excludeTools: ["*"] };

const offBy = (source: ConfigSource): NamedRules => ({
  count: 0,
  of: () => (isUsers(source) ? UNRULED : OFF),
  source,
});

const usersNames = (servers: readonly ServerDefinition[]): string[] => [
  ...new Set(
    servers
      .flatMap(withReplaced)
      .filter(isUsersOwn)
      .map(({ name }) => name),
  ),
];

/**
 * What is known although all rules are too many: the user's own ones, laid over the user's own servers, whatever a project adds, and
 * over what a project makes of these. What is off for rules of the user's, no file of a project switches on; undefined: the user's
 * own rules are too many, too.
 */
function usersAlone(servers: readonly ServerDefinition[], files: readonly NamedRules[]): Apply | undefined {
  const own = files.filter(({ source }) => isUsers(source));
  const names = usersNames(servers);
  if (overflow(names, own)) return undefined;
  const known = new Set(names);
  const theirs = files.filter(({ source }) => !isUsers(source)).map(({ source }) => offBy(source));
  const overUsers = laying([...own, ...theirs.slice(-1)]);
  const off = [...own.map(({ source }) => offBy(source)), ...theirs].slice(0, 1);
  const ofKnown = own.map((rules) => ({
    ...rules,
    of: (name: string) => (known.has(name) ? rules.of(name) : undefined),
  }));
  const overTheirs = laying([...ofKnown, ...off]);
  const apply: Apply = (base) => {
    const replaced = base.replaced && apply(base.replaced);
    const over = isUsersOwn(base) ? overUsers : overTheirs;
    return { ...over({ ...base, replaced: undefined }), replaced };
  };
  return apply;
}

/** `servers`: of all files of the program. If there are too many rules, no server may run without those that are not known. */
export function rulesOver(servers: readonly ServerDefinition[], files: readonly NamedRules[]): RulesOver {
  const tooMuch = overflow(
    servers.map(({ name }) => name),
    files,
  );
  const problems: ConfigProblem[] = [];
  if (!tooMuch)
    return {
      apply: telling(laying(files), files, problems),
      problems,
      steps: (name) => stepsOf(files, name),
    };
  const own = files.filter(({ source }) => isUsers(source));
  const alone = usersAlone(servers, files);
  const isTheirs = alone !== undefined && own.length === files.length;
  // With a project's rules among them, servers of the user's have their tools, under the user's rules.
  const unruled = alone && !isTheirs ? "" : ", and have no tools if they are switched on";
  problems.push({
    ...{ severity: "warning", file: tooMuch.source.file, line: 1, column: 1 },
    message: `${tooMuch.message}, so the${isTheirs ? " project's" : ""} servers of this program are off${unruled}`,
    remedy: "Remove rules or servers that you do not need.",
  });
  const off = offBy((own.at(-1) ?? tooMuch).source);
  return {
    apply: alone ? telling(alone, own, problems) : laying([off]),
    problems,
    steps: () => STEPS_OF_FEW,
  };
}

/** Learns what the rules cost, as far as they can count. */
async function learnCosts(names: readonly string[], files: readonly NamedRules[]): Promise<void> {
  let [all, taken, count] = [0, 0, 0];
  for (const rules of files) {
    count += rules.count;
    if (count > LIMITS.toolRules) return;
    for (const name of names) {
      const { steps } = costOf(rules, name);
      all += steps;
      taken += steps;
      if (all > MOST_STEPS) return;
      if (taken < TURN_STEPS) continue;
      taken = 0;
      await nextTurn();
    }
  }
}

/** The same in turns of the event loop: this thread serves all servers. */
export async function underRules(
  servers: readonly ServerDefinition[],
  files: readonly NamedRules[],
): Promise<{ servers: ServerDefinition[]; problems: ConfigProblem[] }> {
  if (files.length === 0) return { servers: [...servers], problems: [] };
  await learnCosts(
    usersNames(servers),
    files.filter(({ source }) => isUsers(source)),
  );
  await learnCosts(
    servers.map(({ name }) => name),
    files,
  );
  const { apply, problems, steps } = rulesOver(servers, files);
  const result: ServerDefinition[] = [];
  let taken = 0;
  for (const server of servers) {
    result.push(apply(server));
    taken += steps(server.name);
    if (taken < TURN_STEPS) continue;
    taken = 0;
    await nextTurn();
  }
  return { servers: result, problems };
}
