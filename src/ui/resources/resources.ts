/**
 * Resources that a person hands to the model by `@<server>:<uri>`. Owns: which input may hold such a mention. read-mentions.ts,
 * loaded with the first of them, owns the reading and the suggestions. Must not: know the
 * worker's inside.
 */
import type { InputEvent, InputResult, PiContext } from "../../pi/api.ts";
import { guardStale } from "../../pi/extension.ts";
import type { ResourceHost } from "./read-mentions.ts";

/** A server's name is unknown here, but a URI has a scheme. */
const HAS_MENTION = /@[^@]*:[a-z][a-z0-9+.-]*:\S/i;

export function createResourceMentions(host: ResourceHost) {
  return {
    /** The input with the resources that it names; undefined for an input that cannot name any. */
    onInput: (event: InputEvent, ctx: PiContext): Promise<InputResult> | undefined => {
      // A server's own text must not make the user's program read anything.
      if (event.source === "extension" || !HAS_MENTION.test(event.text)) return undefined;
      return import("./read-mentions.ts").then(({ readMentions }) => readMentions(host, event, ctx));
    },
    /** Adds resources to the suggestions behind an `@`, which Pi shows in a terminal. */
    complete: async ({ ui }: PiContext): Promise<void> => {
      const { withResources } = await import("./read-mentions.ts");
      // A session that has ended meanwhile needs no suggestions.
      guardStale(
        () => ui.addAutocompleteProvider((current) => withResources(host, current)),
        () => undefined,
      );
    },
  };
}
