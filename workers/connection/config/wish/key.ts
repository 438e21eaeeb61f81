/** Sets a key of a server's entry, or where its credential is. Pure. */

import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { KeySource } from "../../../../src/shared/protocol/panel.ts";
import { advice } from "../../../shared/commands.ts";
import { editEntry } from "../edit/edit.ts";
import type { Edit } from "./edit-type.ts";

/** Throws `bad_config` for a value that is an object: rules that somebody wrote are not replaced by a word. */
export const keyEdit =
  (file: string, server: string, key: string, value: string): Edit =>
  (text) =>
    editEntry(text, server, file, ({ entry, set }) => {
      if (isObject(entry[key])) {
        throw new ThreadsError("bad_config", `${key} of ${server} in ${file} holds rules.`, {
          remedy: advice("edit"),
          data: { file },
        });
      }
      set([key], value);
    });

/** Writes where the key is, and takes out what would be sent in its place. */
export const sourceEdit =
  (file: string, server: string, { header, from }: KeySource): Edit =>
  (text) =>
    editEntry(text, server, file, ({ entry, set, remove }) => {
      const drop = (path: [string, ...string[]]): void => {
        const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), entry);
        if (value !== undefined) remove(path as unknown as [...string[], string]);
      };
      if (header !== undefined) return set(["headers", header], writtenSource(from));
      const isVariable = "variable" in from;
      drop([isVariable ? "bearerToken" : "bearerTokenEnv"]);
      const headers = isObject(entry.headers) ? Object.keys(entry.headers) : [];
      for (const name of headers) if (name.toLowerCase() === "authorization") drop(["headers", name]);
      if (entry.auth === false || entry.auth === "none" || entry.auth === "oauth") drop(["auth"]);
      set([isVariable ? "bearerTokenEnv" : "bearerToken"], isVariable ? from.variable : writtenSource(from));
    });

/** The source as the value of a key: a reference to the variable, or the command, which runs at each connect. */
export const writtenSource = (from: KeySource["from"]): string =>
  "variable" in from ? `\${${from.variable}}` : `!${from.command}`;
