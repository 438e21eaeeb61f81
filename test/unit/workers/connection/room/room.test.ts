/** Owns: the order of a room's rules, its environment, and what is written for bubblewrap and Seatbelt. Nothing runs. */
import { describe, expect, test } from "vitest";
import { linuxLaunch } from "../../../../../workers/connection/room/linux.ts";
import { macosLaunch, profileOf } from "../../../../../workers/connection/room/macos.ts";
import {
  inOrder,
  type Plan,
  type Rule,
  roomEnvironment,
} from "../../../../../workers/connection/room/plan.ts";

const rule = (text: string): Rule => {
  const [effect, path] = text.split(" ") as [Rule["effect"], string];
  return { effect, path };
};
const ordered = (...texts: string[]): string[] =>
  inOrder(texts.map(rule)).map(({ effect, path }) => `${effect} ${path}`);

describe("the order of rules", () => {
  test.each<[what: string, rules: string[], result: string[]]>([
    ["parents come first", ["read /a/b/c", "empty /a"], ["empty /a", "read /a/b/c"]],
    ["of two for one path the later counts", ["empty /a", "write /a"], ["write /a"]],
    [
      "what changes nothing is left out",
      ["read /a", "empty /b", "closed /b/c", "write /c", "write /c/d"],
      ["empty /b", "write /c"],
    ],
    [
      "a hidden place in a writable one, and a writable one in that",
      ["write /h", "empty /h/.ssh", "write /h/.ssh/known"],
      ["write /h", "empty /h/.ssh", "write /h/.ssh/known"],
    ],
    ["names that begin alike are apart", ["empty /a", "read /ab"], ["empty /a"]],
    ["the root", ["write /"], ["write /"]],
  ])("%s", (_what, rules, result) => {
    expect(ordered(...rules)).toEqual(result);
  });

  test("a folder that keeps its name counts in a writable one alone", () => {
    const pin = { ...rule("write /h/a"), isPin: true } as const;
    expect(inOrder([pin, rule("write /h"), rule("empty /h/a/b")])).toContain(pin);
    expect(
      inOrder([rule("write /h"), rule("empty /h/a"), { ...rule("write /h/a/c"), isPin: true }]),
    ).toHaveLength(2);
  });
});

const plan: Plan = {
  rules: [
    rule("empty /tmp"),
    rule("empty /home/a/.ssh"),
    rule("closed /home/a/.npmrc"),
    rule("read /tmp/x"),
    rule("write /data"),
  ],
  ...{ data: "/data", temp: "/tmp", nothing: "/nothing", cwd: "/work", network: true },
};
const launch = {
  program: "/bin/s",
  args: ["--x", "a b"],
  env: { A: "secret", LD_PRELOAD: "/x.so" },
  cwd: "/work",
};

test("bubblewrap: mounts in the order of the rules; no variable but the loader's on its command line", () => {
  const { program, args, env, cwd } = linuxLaunch(launch, plan, "/usr/bin/bwrap");
  expect({ program, cwd, env }).toEqual({ program: "/usr/bin/bwrap", cwd: "/", env: { A: "secret" } });
  expect(args.join(" ")).toBe(
    "--die-with-parent --unshare-pid --unshare-ipc --unshare-cgroup-try --cap-drop ALL --ro-bind / / --dev /dev --proc /proc " +
      "--size 1073741824 --perms 1777 --tmpfs /tmp --size 1048576 --tmpfs /home/a/.ssh --ro-bind /nothing /home/a/.npmrc " +
      "--ro-bind /tmp/x /tmp/x --bind /data /data --setenv LD_PRELOAD /x.so --chdir /work -- /bin/s --x a b",
  );
  expect(linuxLaunch(launch, { ...plan, network: false }, "/b").args).toContain("--unshare-net");
});

describe("Seatbelt", () => {
  test("the profile: later rules win, as in the plan", () => {
    const lines = profileOf(plan).split("\n");
    expect(lines.slice(0, 3)).toEqual([
      "(version 1)",
      "(allow default)",
      "(deny file-write* file-link file-clone)",
    ]);
    const at = (line: string): number => lines.indexOf(line);
    expect(
      at('(deny file-read-data file-read-xattr file-write* file-link file-clone (subpath "/tmp"))'),
    ).toBeGreaterThan(2);
    expect(at('(allow file-read* (subpath "/tmp/x"))')).toBeGreaterThan(
      at('(deny file-read-data file-read-xattr file-write* file-link file-clone (subpath "/tmp"))'),
    );
    expect(at('(allow file-read* file-write* file-link file-clone (subpath "/data"))')).toBeGreaterThan(2);
    expect(lines).toContain("(deny network-outbound (remote unix-socket))");
    expect(lines).not.toContain("(deny network*)");
  });

  test("no folder above a hidden one gets another name, and neither does one that may be written", () => {
    const rules = [rule("write /h"), { ...rule("write /h/a"), isPin: true } as const, rule("empty /h/a/b")];
    const lines = profileOf({ ...plan, rules }).split("\n");
    const allowed = lines.indexOf('(allow file-read* file-write* file-link file-clone (subpath "/h"))');
    for (const path of ["/h", "/h/a"])
      expect(lines.indexOf(`(deny file-write-unlink file-clone (literal "${path}"))`)).toBeGreaterThan(
        allowed,
      );
    expect(lines).not.toContain('(allow file-read* file-write* file-link file-clone (subpath "/h/a"))');
  });

  test.each([
    [
      "launchd starts nothing for it, and no other program does; a preference would have a terminal start something",
      "(deny appleevent-send lsopen job-creation user-preference-write)",
    ],
    ["keys are kept by a service", '(deny mach-lookup (global-name "com.apple.SecurityServer")'],
    ["it sees its own processes", "(deny process-info*)\n(allow process-info* (target same-sandbox))"],
    ["it signals its own processes", "(deny signal)\n(allow signal (target same-sandbox))"],
    [
      "what it may not write gets no other name",
      '(deny file-write* file-link file-clone (subpath "/tmp/x"))',
    ],
    ["its own sockets", '(allow network-outbound (remote unix-socket (subpath "/data")))'],
    ["names of the network", '(allow network-outbound (literal "/private/var/run/mDNSResponder"))'],
  ])("%s", (_what, words) => {
    expect(profileOf(plan)).toContain(words);
  });

  test("without a network", () => {
    expect(profileOf({ ...plan, network: false }).split("\n")).toContain("(deny network*)");
  });

  test("a path can end neither its string nor the profile", () => {
    const path = '/a"))\n(allow default)\\';
    const profile = profileOf({ ...plan, rules: [{ path, effect: "write" }] });
    expect(profile).toContain('(subpath "/a\\"))\n(allow default)\\\\")');
  });

  test("the launch", () => {
    expect(macosLaunch(launch, plan)).toEqual({
      ...launch,
      program: "/usr/bin/sandbox-exec",
      args: ["-p", profileOf(plan), "/bin/s", "--x", "a b"],
    });
  });
});

test("the environment: caches in the room, nothing that leads to sockets, and the entry's own word counts", () => {
  const env = { HOME: "/h", SSH_AUTH_SOCK: "/s", DISPLAY: ":0", TMPDIR: "/t", XDG_CACHE_HOME: "/c" };
  expect(roomEnvironment(env, { DISPLAY: ":0", XDG_CACHE_HOME: "/c" }, plan)).toEqual({
    ...{ HOME: "/h", DISPLAY: ":0", TMPDIR: "/tmp", XDG_CACHE_HOME: "/c" },
    ...{ XDG_DATA_HOME: "/data/share", XDG_STATE_HOME: "/data/state", npm_config_cache: "/data/npm" },
  });
});
