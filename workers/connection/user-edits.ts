/**
 * What the user does to configuration files from within Pi: `/mcp enable`, `/mcp disable`, `/mcp edit`. Writes the
 * file; it is then applied like any edit of it.
 */
import type { ConnectionMethods } from "../../src/protocol/api.ts";
import { describeError, ThreadsError } from "../../src/protocol/errors.ts";
import { explainAbsent } from "./absent-server.ts";
import { editableFile, fileToEdit, writeConfigFile, writeEnabled } from "./config/edit.ts";
import { readText } from "./config/read.ts";
import type { RunningConfiguration } from "./configuration.ts";
import type { Supervisor } from "./supervisor.ts";

type Answer<M extends keyof ConnectionMethods> = Promise<ConnectionMethods[M]["value"]>;

export interface UserEdits {
  setEnabled(params: ConnectionMethods["setEnabled"]["params"]): Answer<"setEnabled">;
  readConfig(params: ConnectionMethods["readConfig"]["params"]): Answer<"readConfig">;
  writeConfig(params: ConnectionMethods["writeConfig"]["params"]): Answer<"writeConfig">;
}

/** All throw `bad_config` for what a file is or holds, and `setEnabled` `unknown_server` or `server_removed`. */
export function createUserEdits(running: RunningConfiguration, supervisor: Supervisor): UserEdits {
  /** Also a server of the project that may not run can be switched off. */
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
      // The remedy of the other is for a model.
      throw new ThreadsError(code, message, { remedy: "/mcp lists the servers.", data });
    }
  };

  const textOf = async (file: string): Promise<string> => {
    const read = await readText(file);
    if (read.kind === "unreadable") {
      throw new ThreadsError("bad_config", `${file} cannot be read: ${read.reason}.`);
    }
    return read.kind === "text" ? read.text : "";
  };

  return {
    setEnabled: async ({ server, enabled, project }) => {
      const file = fileToEdit(definitionOf(server), running.facts, { project });
      await writeEnabled(file, server, enabled);
      await running.reload();
      const absent = enabled ? explainAbsent(server, running.state) : undefined;
      const runs = supervisor.servers.some(({ name }) => name === server);
      return { file, ...(absent && !runs ? { but: describeError(absent) } : {}) };
    },
    readConfig: async ({ project }) => {
      const file = editableFile(running.facts, project);
      return { file, text: await textOf(file) };
    },
    writeConfig: async ({ project, before, text }) => {
      const file = editableFile(running.facts, project);
      if ((await textOf(file)) !== before) {
        throw new ThreadsError("bad_config", `${file} has changed meanwhile; nothing was written.`, {
          remedy: "Edit it again.",
        });
      }
      await writeConfigFile(file, text);
      await running.reload();
      return { file };
    },
  };
}
