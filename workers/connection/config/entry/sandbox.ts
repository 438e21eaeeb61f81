/**
 * The key `sandbox` of a server and of the settings: the room in which a local server runs. Owns: what may be written, that a
 * project asks for no more room than the user gives, and the words of a consent. What a room hides is in
 * workers/connection/room. Pure.
 */
import { posix } from "node:path";
import * as z from "zod";
import { filled, flag, shapeOf } from "./shape.ts";
import { shown } from "./shown-text.ts";

/** Paths as they are written: absolute, from the home folder (`~/`), or from the session's folder. */
export interface Sandbox {
  /** What the server may write beside its working folder, if its entry names one, and its own data. */
  write: readonly string[];
  /** What it may read although rooms hide it. */
  read: readonly string[];
  /** What it may not read either. */
  hide: readonly string[];
  network: boolean;
}

/** As it is written. */
export type WrittenSandbox = boolean | { [K in keyof Sandbox]?: Sandbox[K] | undefined };

/** Far more paths than a person lists, and few enough for each start. */
const PATHS = 100;
const PATH_CHARS = 1_000;
const paths = () =>
  z
    .array(
      filled()
        .max(PATH_CHARS)
        .refine((path) => !path.includes("\0"), { error: "expected a path" }),
    )
    .max(PATHS);

export const sandboxShape = () =>
  z.union([
    flag(),
    z.strictObject(
      shapeOf({
        write: {
          schema: paths,
          description: "Folders and files that it may write.",
          examples: [["~/notes"]],
        },
        read: {
          schema: paths,
          description: "Folders and files that it may read although a sandbox hides them.",
          examples: [["~/.kube"]],
        },
        hide: {
          schema: paths,
          description: "Folders and files that it may not read.",
          examples: [["~/letters"]],
        },
        network: {
          schema: flag,
          description: "false: no network.",
          examples: [false],
        },
      }),
    ),
  ]);

/** Undefined: no sandbox. */
export function sandboxOf(written: WrittenSandbox | undefined): Sandbox | undefined {
  if (written === undefined || written === false) return undefined;
  const { write = [], read = [], hide = [], network = true } = written === true ? {} : written;
  return { write, read, hide, network };
}

/** Whether the path is one of these, or lies in one of them. A path that climbs (`..`) lies nowhere. */
function isCovered(path: string, by: readonly string[]): boolean {
  if (path.split(/[\\/]/).includes("..")) return by.includes(path);
  const plain = posix.normalize(path).replace(/\/$/, "");
  return by.some((one) => {
    const folder = posix.normalize(one).replace(/\/$/, "");
    return plain === folder || plain.startsWith(`${folder}/`);
  });
}

/** The room of a server that asks for `wanted` where the user gives `own`; `isLooser`: it does not get all that it asks for. */
export function lessRoom(
  own: WrittenSandbox,
  wanted: WrittenSandbox,
): { value: WrittenSandbox; isLooser: boolean } {
  const most = sandboxOf(own);
  if (most === undefined) return { value: wanted, isLooser: false };
  const asked = sandboxOf(wanted);
  if (asked === undefined) return { value: own, isLooser: true };
  if (wanted === true) return { value: own, isLooser: false };
  const write = asked.write.filter((path) => isCovered(path, most.write));
  const read = asked.read.filter((path) => isCovered(path, most.read));
  // Without a word about the network, the user's counts.
  const wantsNetwork = typeof wanted === "object" && wanted.network === true;
  return {
    value: {
      write,
      read,
      hide: [...new Set([...most.hide, ...asked.hide])],
      network: most.network && asked.network,
    },
    isLooser:
      write.length < asked.write.length || read.length < asked.read.length || (wantsNetwork && !most.network),
  };
}

const named = (what: string, list: readonly string[]): string[] =>
  list.length === 0 ? [] : [`${what} ${list.map(shown).join(", ")}`];

export function sandboxWords(written: WrittenSandbox): string[] {
  const room = sandboxOf(written);
  if (!room) return [];
  const parts = [
    ...named("may write", room.write),
    ...named("may read", room.read),
    ...named("hides", room.hide),
    ...(room.network ? [] : ["has no network"]),
  ];
  return [parts.length === 0 ? "in a sandbox" : `in a sandbox that ${parts.join(", ")}`];
}
