/**
 * Owns: which plugins Claude Code has installed and enabled for the session's folder. Its list names the folders, its
 * settings say which are enabled: those of the project win over the user's, and are read only if Pi trusts the project.
 * Source: code.claude.com/docs/en/plugins-reference and settings; the list as version 1 and 2 of Claude Code write it.
 */
import { isAbsolute, join } from "node:path";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { type ConfigFacts, PACKAGES } from "../files/sources.ts";
import { objectAt } from "../hosts/format.ts";
import { type Loader, packageProblem, readObject, realOf, sourceOf } from "./loader.ts";
import type { Plugin } from "./plugins.ts";

const configFolder = ({ env, home }: ConfigFacts): string => env.CLAUDE_CONFIG_DIR || join(home, ".claude");

/** An installation for another project does not count. The narrowest scope wins. */
const SCOPES = ["local", "project", "user", "managed"];

async function installationOf(written: unknown, cwd: string): Promise<string | undefined> {
  // Version 1 has one installation of each plugin.
  const all = (Array.isArray(written) ? written : [written]).filter(isObject).slice(0, PACKAGES);
  const here = await realOf(cwd);
  const fitting = await Promise.all(
    all.map(async ({ scope = "user", projectPath, installPath }) => {
      const rank = SCOPES.indexOf(String(scope));
      const isHere =
        typeof projectPath !== "string" ||
        projectPath === cwd ||
        (here !== undefined && (await realOf(projectPath)) === here);
      const isFit = rank >= 0 && isHere && typeof installPath === "string" && isAbsolute(installPath);
      return isFit ? [{ rank, path: installPath as string }] : [];
    }),
  );
  return fitting.flat().sort((a, b) => a.rank - b.rank)[0]?.path;
}

/** `name@marketplace` -> whether it is enabled. */
async function enabledPlugins(
  loader: Loader,
): Promise<{ enabled: ReadonlySet<string>; problems: ConfigProblem[] }> {
  const { facts } = loader;
  const settings = [
    sourceOf(join(configFolder(facts), "settings.json"), "user"),
    ...["settings.json", "settings.local.json"]
      .filter(() => facts.projectTrusted)
      .map((name) => sourceOf(join(facts.cwd, ".claude", name), "project-file")),
  ];
  const read = await Promise.all(settings.map((source) => readObject(loader, source)));
  const said = Object.assign({}, ...read.map(({ value }) => objectAt(value?.root.enabledPlugins))) as object;
  const enabled = Object.entries(said).flatMap(([id, word]) => (word === false || word === null ? [] : [id]));
  return { enabled: new Set(enabled), problems: read.flatMap(({ problems }) => problems) };
}

/** Never throws. */
export async function claudePlugins(
  loader: Loader,
): Promise<{ plugins: Plugin[]; problems: ConfigProblem[] }> {
  const { facts } = loader;
  const folder = facts.env.CLAUDE_CODE_PLUGIN_CACHE_DIR || join(configFolder(facts), "plugins");
  const list = sourceOf(join(folder, "installed_plugins.json"), "user");
  const [installed, { enabled, problems }] = await Promise.all([
    readObject(loader, list),
    enabledPlugins(loader),
  ]);
  const named = Object.entries(objectAt(installed.value?.root.plugins)).filter(([id]) => enabled.has(id));
  const found = await Promise.all(
    named.slice(0, PACKAGES).map(async ([id, written]): Promise<Plugin[]> => {
      const path = await installationOf(written, facts.cwd);
      const real = path && (await realOf(path));
      const data = join(folder, "data", id.replace(/[^A-Za-z0-9_-]/g, "-"));
      return real ? [{ folder: real, name: id.replace(/@[^@]*$/, ""), data, isClaude: true }] : [];
    }),
  );
  const more =
    named.length > PACKAGES
      ? [
          packageProblem(
            list.file,
            {},
            `servers of the first ${PACKAGES} plugins are used`,
            "Disable plugins that you do not need.",
          ),
        ]
      : [];
  return { plugins: found.flat(), problems: [...installed.problems, ...problems, ...more] };
}
