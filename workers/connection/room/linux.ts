/**
 * A room on Linux by bubblewrap (bwrap(1)): a tree of mounts in which all is read-only but what a rule opens, a process
 * namespace of its own, whose processes all end with the first one, and no capabilities. With `network` false also a
 * network namespace of its own, which has no way out and no abstract sockets of others. Pure.
 */
import type { Launch } from "../../shared/programs/processes.ts";
import type { Plan, Rule } from "./plan.ts";

/** Bytes of the private temp folder, which lies in memory. */
const TEMP_BYTES = 1024 * 1024 * 1024;
/** Bytes of a hidden folder: nothing needs to be written there. */
const EMPTY_BYTES = 1024 * 1024;
/** Variables that the loader of bwrap itself would obey, before there is a room (ld.so(8)). They hold no secrets. */
const LOADER = /^(?:LD_|GLIBC_TUNABLES$|GCONV_PATH$|LOCPATH$|MALLOC_)/;

function argumentsOf({ path, effect }: Rule, { temp, nothing }: Plan): string[] {
  if (path === temp && effect === "empty")
    return ["--size", String(TEMP_BYTES), "--perms", "1777", "--tmpfs", path];
  if (effect === "empty") return ["--size", String(EMPTY_BYTES), "--tmpfs", path];
  if (effect === "closed") return ["--ro-bind", nothing, path];
  return [effect === "write" ? "--bind" : "--ro-bind", path, path];
}

/** `bwrap`: its whole path. */
export function linuxLaunch({ program, args, env }: Launch, plan: Plan, bwrap: string): Launch {
  const variables = Object.entries(env);
  const ofLoader = variables.filter(([name]) => LOADER.test(name));
  return {
    program: bwrap,
    args: [
      ...["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--cap-drop", "ALL"],
      ...(plan.network ? [] : ["--unshare-net"]),
      ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"],
      ...plan.rules.flatMap((rule) => argumentsOf(rule, plan)),
      ...ofLoader.flatMap(([name, value]) => ["--setenv", name, value]),
      ...["--chdir", plan.cwd, "--", program, ...args],
    ],
    env: Object.fromEntries(variables.filter(([name]) => !LOADER.test(name))),
    // bwrap itself needs no folder of the server, which a rule may hide.
    cwd: "/",
  };
}

/** What bwrap says -> what to do about it. */
const REMEDIES: readonly (readonly [words: RegExp, remedy: string])[] = [
  [
    /proc on/i,
    "A container must let programs mount /proc: start it with --security-opt systempaths=unconfined.",
  ],
  [
    /creat\w* new namespace|uid map|user namespace|unshare|Operation not permitted/i,
    "This system does not let programs make namespaces. On Ubuntu 24.04 allow it for bwrap (an AppArmor profile, or sysctl kernel.apparmor_restrict_unprivileged_userns=0); in a container start it with --security-opt seccomp=unconfined or --cap-add SYS_ADMIN; or take sandbox out.",
  ],
  [/Unknown option/i, "Install bubblewrap 0.7 or newer."],
  [/execvp|chdir/i, "The sandbox hides its program or its folder: name the folder in sandbox.read."],
];

/** The remedy for what bwrap wrote to stderr; undefined if bwrap wrote nothing. */
export function bwrapFailure(stderr: string): { what: string; remedy: string } | undefined {
  const what = /^bwrap: (.{1,300})/m.exec(stderr)?.[1];
  if (what === undefined) return undefined;
  const [, remedy = "Run its command in a shell to see more."] =
    REMEDIES.find(([words]) => words.test(what)) ?? [];
  return { what, remedy };
}
