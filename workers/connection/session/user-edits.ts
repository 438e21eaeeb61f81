/**
 * Carries out what the user does to configuration files within Pi: `/mcp enable`, `/mcp disable`, `/mcp edit`, and the
 * answer that a tool may always run. Writes the file, whose new text is then applied like any edit.
 */

import type { ConnectionMethods } from "../../../src/shared/protocol/contract.ts";
import { describeError, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { formatBytes } from "../../../src/shared/text/amounts.ts";
import { advice } from "../../shared/commands.ts";
import type { RunningConfiguration } from "../config/config.ts";
import {
  changeConfigFile,
  editAllowed,
  editableFile,
  editEnabled,
  fileToEdit,
  realFile,
  textOf,
  writeEdited,
} from "../config/edit/edit.ts";
import { editSetting } from "../config/edit/entries.ts";
import { isProject, isUsersOwn, obeysUsersFile, type ServerDefinition } from "../config/entry/definition.ts";
import { asRules } from "../config/entry/exposure.ts";
import { fileLimits, parseConfigText } from "../config/files/files.ts";
import { type ConfigFacts, configSources } from "../config/files/sources.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { explainAbsent, isRequired } from "./explain-server.ts";

type Answer<M extends keyof ConnectionMethods> = Promise<ConnectionMethods[M]["value"]>;

/**
 * Writes an own edit and applies it: the text that runs with this change alone, since other edits may wait for the person. The
 * whole file counts if that text cannot be edited, or does not have the server. `ofRunning`: what changes that text, if that
 * is another edit. Throws what the edit throws, and `bad_config` if the file cannot be read or written.
 */
export async function writeOwn(
  running: RunningConfiguration,
  file: string,
  edit: (text: string | undefined) => string,
  { server, ofRunning = edit }: { server?: string; ofRunning?: typeof edit } = {},
): Promise<void> {
  await changeConfigFile(file, edit);
  const text = async ({ servers, texts }: RunningConfiguration["applied"]): Promise<string> => {
    try {
      if (server === undefined || servers.some(({ name }) => name === server))
        return ofRunning(texts.get(file));
    } catch (error) {
      if (!(error instanceof ThreadsError)) throw error;
    }
    return (await textOf(file)) ?? "";
  };
  await running.written({ file, text });
}

/** Why the next start could use nothing of this text, as `line:column: reason`; undefined: it can. */
function uselessBecause(text: string, file: string, facts: ConfigFacts): string | undefined {
  const source = configSources(facts).find((one) => one.file === file);
  if (!source) return undefined;
  const { bytes } = fileLimits(source);
  if (Buffer.byteLength(text) > bytes) return `the text is larger than ${formatBytes(bytes)}.`;
  const { broken, problems } = parseConfigText(text, source);
  const [first] = problems;
  return broken && first ? `${first.line}:${first.column}: ${first.message}.` : undefined;
}

export type UserEdits = ReturnType<typeof createUserEdits>;

type Params<M extends keyof ConnectionMethods> = ConnectionMethods[M]["params"];

/** All throw `bad_config` if the file cannot be edited; `setEnabled` throws also `unknown_server` or `server_removed`. */
export function createUserEdits(running: RunningConfiguration, supervisor: Supervisor) {
  /** Finds also a server of the project that may not run: it can be switched off, too. */
  const definitionOf = (name: string) => {
    const found = supervisor.servers.find((server) => server.name === name)?.definition;
    const configured = found ?? running.configured(name);
    if (configured) return configured;
    const absent = explainAbsent(name, running.state);
    if (absent) throw absent;
    try {
      return supervisor.get(name).definition;
    } catch (error) {
      if (!(error instanceof ThreadsError)) throw error;
      const { code, message, data } = error;
      // The remedy of that error is for a model.
      throw new ThreadsError(code, message, { remedy: advice("lists"), data });
    }
  };

  /**
   * Allows a server that the user's own files define and that the user's own command switches on: nothing is asked once
   * more. Answers why that could not be remembered, if it could not.
   */
  const allowAsUser = async (definition: ServerDefinition, file: string): Promise<unknown> => {
    const { userRules } = definition;
    const source = configSources(running.facts).find((one) => one.file === file);
    const isOff = !(userRules ?? definition).enabled;
    if (!source || !isProject(source.origin) || !isUsersOwn(definition) || !isOff) return undefined;
    return running.allowAsUser(definition).then(
      () => undefined,
      (error: unknown) => error,
    );
  };

  /** Why a server that is now on does not run all the same. */
  const whyIdle = (server: string, enabled: boolean): { but?: string } => {
    const absent = enabled ? explainAbsent(server, running.state) : undefined;
    const isOn = supervisor.servers.some(({ name, definition }) => name === server && definition.enabled);
    return absent && !isOn ? { but: describeError(absent) } : {};
  };

  return {
    setEnabled: async ({ server, enabled, project, session }: Params<"setEnabled">): Answer<"setEnabled"> => {
      const definition = definitionOf(server);
      if (definition.isRequired && !enabled) throw isRequired(definition);
      if (session) {
        await running.switch(server, enabled);
        return { file: definition.file, ...whyIdle(server, enabled) };
      }
      const file = fileToEdit(definition, running.facts, { project });
      const real = await realFile(file, running.facts);
      const unsaved = enabled ? await allowAsUser(definition, file) : undefined;
      await writeOwn(running, file, (text) => editEnabled(text, server, enabled, file), { server });
      // What lasts is what holds now as well.
      await running.switch(server, undefined);
      if (unsaved) throw unsaved;
      return { file: real, ...whyIdle(server, enabled) };
    },
    /** Lets calls of the tool run unasked, by a rule in the user's own file. `tool`: the server's name of it. */
    allowTool: async (server: string, tool: string): Promise<void> => {
      const { definition } = supervisor.get(server);
      // Another server has taken the name since the question: the call is refused for that.
      if (!obeysUsersFile(definition)) return;
      const allowed = { server, tool, rules: asRules(definition.approve) };
      const file = editableFile(running.facts, false);
      await writeOwn(running, file, (text) => editAllowed(text, allowed, file), { server });
    },
    captureStats: async (): Answer<"captureStats"> => {
      const file = editableFile(running.facts, false);
      const real = await realFile(file, running.facts);
      await writeOwn(running, file, (text) => editSetting(text, "captureStats", true, file));
      return { file: real };
    },
    readConfig: async ({ project }: Params<"readConfig">): Answer<"readConfig"> => {
      const file = editableFile(running.facts, project);
      return { file: await realFile(file, running.facts), text: (await textOf(file)) ?? "" };
    },
    writeConfig: async ({ project, before, text }: Params<"writeConfig">): Answer<"writeConfig"> => {
      const file = editableFile(running.facts, project);
      const real = await realFile(file, running.facts);
      const problem = uselessBecause(text, file, running.facts);
      if (problem !== undefined) return { file: real, problem };
      const now = await writeEdited(file, { before, text });
      if (now !== undefined) return { file: real, now };
      await running.written({ file, text: () => text });
      return { file: real };
    },
  };
}
