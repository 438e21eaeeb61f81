/** How a server's name is shown. Pure. */
import { oneLine } from "../shared/text/unprintable.ts";

const NAME_CHARS = 200;

/** A server's name as a sentence or a list shows it: one line, cut. A project's file may hold any name. */
export const serverName = (name: string): string => oneLine(name, NAME_CHARS);
