/** Sets one key of a server's entry. Pure. */

import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
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
