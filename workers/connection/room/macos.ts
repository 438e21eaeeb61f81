/**
 * A room on macOS by Seatbelt (sandbox-exec(1)): a profile in which all is allowed but writing and what a rule hides. Of
 * two rules for one path the later one counts, as here. Pure.
 */
import type { Launch } from "../../shared/programs/processes.ts";
import type { Plan, Rule } from "./plan.ts";

export const SANDBOX_EXEC = "/usr/bin/sandbox-exec";

/** A path as a string of the profile's language, which is that of TinyScheme. */
const quoted = (path: string): string => `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

function linesOf({ path, effect, isPin }: Rule): string[] {
  const at = `(subpath ${quoted(path)})`;
  // A rule counts for a path, and what had another name would be under no rule.
  const pin = `(deny file-write-unlink (literal ${quoted(path)}))`;
  if (effect === "write") return isPin ? [pin] : [`(allow file-read* file-write* ${at})`, pin];
  if (effect === "read") return [`(allow file-read* ${at})`, `(deny file-write* ${at})`];
  // The name of a hidden place may be seen: programs look at each folder of a path.
  return [`(deny file-read-data file-read-xattr file-write* ${at})`];
}

/** Devices that each program writes to. */
const DEVICES = ["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper", "/dev/random", "/dev/urandom"];

export const profileOf = ({ rules, network }: Pick<Plan, "rules" | "network">): string =>
  [
    "(version 1)",
    "(allow default)",
    "(deny file-write*)",
    `(allow file-write* ${DEVICES.map((path) => `(literal ${quoted(path)})`).join(" ")} (regex #"^/dev/fd/"))`,
    ...rules.flatMap(linesOf),
    // Sockets of the file system: agents, containers. Names of the network are looked up over one of the system's.
    "(deny network-outbound (remote unix-socket))",
    ...(network
      ? ['(allow network-outbound (literal "/private/var/run/mDNSResponder"))']
      : ["(deny network*)"]),
    // A program outside of the room would do what it is asked: open a page, run a script, read the keychain.
    '(deny mach-lookup (global-name "com.apple.SecurityServer") (global-name "com.apple.securityd"))',
    "(deny appleevent-send)",
    "(deny process-info* (target others))",
    "(deny signal (target others))",
    "(allow signal (target same-sandbox))",
  ].join("\n");

export const macosLaunch = ({ program, args, env, cwd }: Launch, plan: Plan): Launch => ({
  program: SANDBOX_EXEC,
  args: ["-p", profileOf(plan), program, ...args],
  env,
  cwd,
});
