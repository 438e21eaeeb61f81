/**
 * A room on macOS by Seatbelt (sandbox-exec(1)): a profile in which all is allowed but writing and what a rule hides. Of
 * two rules for one path the later one counts, as here. Pure.
 */
import type { Launch } from "../../shared/programs/processes.ts";
import type { Plan, Rule } from "./plan.ts";

export const SANDBOX_EXEC = "/usr/bin/sandbox-exec";

/** A path as a string of the profile's language, which is that of TinyScheme. */
const quoted = (path: string): string => `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** A hard link (link(2)) and a clone (clonefile(2)) are other names for content, and operations of their own. */
const CHANGE = "file-write* file-link file-clone";

function linesOf({ path, effect, isPin }: Rule): string[] {
  const at = `(subpath ${quoted(path)})`;
  // A rule counts for a path, and what had another name would be under no rule. A clone of a folder has all that is in it.
  const pin = `(deny file-write-unlink file-clone (literal ${quoted(path)}))`;
  if (effect === "write") return isPin ? [pin] : [`(allow file-read* ${CHANGE} ${at})`, pin];
  if (effect === "read") return [`(allow file-read* ${at})`, `(deny ${CHANGE} ${at})`];
  // The name of a hidden place may be seen: programs look at each folder of a path.
  return [`(deny file-read-data file-read-xattr ${CHANGE} ${at})`];
}

/** Devices that each program writes to. */
const DEVICES = ["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper", "/dev/random", "/dev/urandom"];

/** Services that do something outside of the room: keep keys, start programs, send events, hold what was copied. */
const SERVICES = [
  ...["com.apple.SecurityServer", "com.apple.securityd", "com.apple.securityd.xpc"],
  ...[
    "com.apple.coreservices.launchservicesd",
    "com.apple.coreservices.appleevents",
    "com.apple.pasteboard.1",
  ],
];

export const profileOf = ({ rules, data, network }: Pick<Plan, "rules" | "data" | "network">): string =>
  [
    "(version 1)",
    "(allow default)",
    `(deny ${CHANGE})`,
    `(allow file-write* ${DEVICES.map((path) => `(literal ${quoted(path)})`).join(" ")} (regex #"^/dev/fd/"))`,
    ...rules.flatMap(linesOf),
    // Sockets of the file system: agents, containers. Names of the network are looked up over one of the system's.
    network ? "(deny network-outbound (remote unix-socket))" : "(deny network*)",
    ...(network ? ['(allow network-outbound (literal "/private/var/run/mDNSResponder"))'] : []),
    // Its own sockets lie in its own folder, where its temp folder is.
    `(allow network-outbound (remote unix-socket (subpath ${quoted(data)})))`,
    `(allow network-bind network-inbound (local unix-socket (subpath ${quoted(data)})))`,
    // A program outside of the room would do what it is asked: open a page, run a script, read the keychain.
    `(deny mach-lookup ${SERVICES.map((name) => `(global-name ${quoted(name)})`).join(" ")})`,
    // Preferences, such as the command with which a terminal starts, are written by cfprefsd.
    "(deny appleevent-send lsopen job-creation user-preference-write)",
    // Not `(target others)`, which does not match on each version.
    "(deny process-info*)",
    "(allow process-info* (target same-sandbox))",
    "(deny signal)",
    "(allow signal (target same-sandbox))",
  ].join("\n");

export const macosLaunch = ({ program, args, env, cwd }: Launch, plan: Plan): Launch => ({
  program: SANDBOX_EXEC,
  args: ["-p", profileOf(plan), program, ...args],
  env,
  cwd,
});
