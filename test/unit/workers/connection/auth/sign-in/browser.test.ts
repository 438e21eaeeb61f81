/** Owns: which program shows the address of a sign-in, when there is none, and that it starts without a shell. */

import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { isOpenable } from "../../../../../../src/shared/text/reading.ts";
import {
  type BrowserOptions,
  hasBrowser,
  openBrowser,
  openersFor,
} from "../../../../../../workers/connection/auth/sign-in/browser.ts";
import { tempFolder } from "../../../../temp-folder.ts";

const URL_ = "https://as.test/authorize?client_id=c&state=s";

type Env = BrowserOptions["env"];
const commands = (platform: NodeJS.Platform, env: Env): string[] =>
  openersFor(URL_, { env, platform }).map(({ command }) => command);

const SSH = { SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22" };
const WSL = { WSL_DISTRO_NAME: "Ubuntu" };
const OPEN = "/usr/bin/open";
const RUNDLL = "C:\\Windows\\System32\\rundll32.exe";

describe("openersFor", () => {
  test.each<[NodeJS.Platform, Env, string[]]>([
    ["darwin", {}, [OPEN]],
    ["darwin", SSH, []],
    ["darwin", { SSH_TTY: "/dev/ttys001" }, []],
    ["darwin", { ...SSH, DISPLAY: ":0" }, [OPEN]],
    ["win32", {}, [RUNDLL]],
    ["win32", { SystemRoot: "D:\\Win" }, ["D:\\Win\\System32\\rundll32.exe"]],
    ["win32", SSH, []],
    ["linux", {}, []],
    ["linux", { DISPLAY: "" }, []],
    ["linux", { DISPLAY: ":0" }, ["xdg-open"]],
    ["linux", { WAYLAND_DISPLAY: "wayland-0" }, ["xdg-open"]],
    ["linux", SSH, []],
    ["linux", { ...SSH, DISPLAY: "localhost:10.0" }, ["xdg-open"]],
    ["linux", WSL, ["wslview"]],
    ["linux", { WSL_INTEROP: "/run/WSL/1_interop" }, ["wslview"]],
    ["linux", { ...WSL, DISPLAY: ":0" }, ["wslview", "xdg-open"]],
    ["linux", { ...WSL, ...SSH }, []],
    ["freebsd", { DISPLAY: ":0" }, ["xdg-open"]],
    ["linux", { DISPLAY: ":0", BROWSER: "none" }, []],
    ["linux", { DISPLAY: ":0", BROWSER: " None " }, []],
    ["linux", { DISPLAY: ":0", BROWSER: "" }, []],
    ["darwin", { BROWSER: "none" }, []],
    ["win32", { BROWSER: "" }, []],
    ["linux", { DISPLAY: ":0", BROWSER: "/opt/b" }, ["/opt/b", "xdg-open"]],
    // Editors that run over SSH set BROWSER to a program that opens the address on the user's own machine.
    ["linux", { ...SSH, BROWSER: "/opt/b" }, ["/opt/b"]],
    ["linux", { DISPLAY: ":0", BROWSER: "firefox" }, ["xdg-open"]],
    ["linux", { DISPLAY: ":0", BROWSER: "./firefox" }, ["xdg-open"]],
    ["win32", { BROWSER: "C:\\b\\b.exe" }, ["C:\\b\\b.exe", RUNDLL]],
    ["win32", { BROWSER: "C:\\b\\b.cmd" }, [RUNDLL]],
    ["win32", { BROWSER: "\\b\\b.exe" }, [RUNDLL]],
  ])("%s with %o -> %o", (platform, env, expected) => {
    expect(commands(platform, env)).toEqual(expected);
  });

  test.each<[NodeJS.Platform, Env, string[]]>([
    ["darwin", {}, [URL_]],
    ["win32", {}, ["url.dll,FileProtocolHandler", URL_]],
    ["linux", { DISPLAY: ":0" }, [URL_]],
    ["linux", { BROWSER: "/opt/b" }, [URL_]],
  ])("%s with %o -> the address is one argument", (platform, env, args) => {
    expect(openersFor(URL_, { env, platform })[0]?.args).toEqual(args);
  });
});

test.each([
  ["https://as.test/authorize", true],
  ["http://127.0.0.1:8080/authorize", true],
  ["http://localhost/authorize", true],
  ["http://[::1]/authorize", true],
  ["http://as.test/authorize", false],
  ["javascript:alert(1)", false],
  ["file:///etc/passwd", false],
  ["ms-settings:", false],
  ["data:text/html,x", false],
  ["-a Calculator", false],
  ["", false],
])("isOpenable: %s -> %s", (url, expected) => {
  expect(isOpenable(URL.parse(url))).toBe(expected);
});

describe.skipIf(process.platform === "win32")("openBrowser with a real program", () => {
  /** A program that writes its folder, its arguments and a variable into a file. */
  async function program(
    name = "browser",
  ): Promise<{ folder: string; file: string; shown: () => Promise<string> }> {
    const folder = await tempFolder();
    const file = join(folder, name);
    const lines = [
      'pwd >"$0.tmp"',
      'for one in "$@"; do echo "$one" >>"$0.tmp"; done',
      'mv "$0.tmp" "$0.shown"',
    ];
    await writeFile(file, `#!/bin/sh\n${lines.join("\n")}\n`);
    await chmod(file, 0o755);
    return { folder, file, shown: () => readFile(`${file}.shown`, "utf8") };
  }

  const open = async (url: string, env: Env) => {
    const notes: string[] = [];
    const result = await openBrowser(url, {
      env,
      platform: process.platform,
      onNote: (note) => notes.push(note),
    });
    return { result, notes };
  };

  test("BROWSER names a program -> it gets the address as one argument, outside of the folder of Pi", async () => {
    const { file, shown } = await program();
    const url = "https://as.test/a?b=$(touch%20x)&c=;`d`&e=%22'*";
    expect(await open(url, { BROWSER: file, PATH: "/usr/bin:/bin" })).toEqual({
      result: "started",
      notes: [],
    });
    await expect.poll(shown).toBe(`/\n${new URL(url).href}\n`);
  });

  test.runIf(process.platform === "linux")("xdg-open on the search path -> it is started", async () => {
    const { folder, file, shown } = await program("xdg-open");
    const env = { DISPLAY: ":0", PATH: `${folder}:/usr/bin:/bin` };
    expect(await open(URL_, env)).toEqual({ result: "started", notes: [] });
    await expect.poll(shown).toBe(`/\n${URL_}\n`);
    expect(file).toContain(folder);
  });

  test.runIf(process.platform === "linux")("xdg-open only in a relative folder of PATH -> none", async () => {
    const { folder, shown } = await program("xdg-open");
    const before = process.cwd();
    process.chdir(folder);
    onTestFinished(() => process.chdir(before));
    expect((await open(URL_, { DISPLAY: ":0", PATH: ".:" })).result).toBe("none");
    await expect(shown()).rejects.toThrow();
  });

  test("hasBrowser -> whether a program is there; none is started", async () => {
    const { folder, file, shown } = await program("xdg-open");
    const has = (env: Env): Promise<boolean> => hasBrowser({ env, platform: "linux" });
    expect(await has({ BROWSER: file })).toBe(true);
    expect(await has({ DISPLAY: ":0", PATH: folder })).toBe(true);
    expect(await has({ DISPLAY: ":0", PATH: join(folder, "empty") })).toBe(false);
    expect(await has({ PATH: folder })).toBe(false);
    expect(await has({ ...SSH, PATH: folder })).toBe(false);
    expect(await has({ BROWSER: "none", DISPLAY: ":0", PATH: folder })).toBe(false);
    await expect(shown()).rejects.toThrow();
  });

  test("a program that cannot run -> a note, and none", async () => {
    const { folder } = await program();
    const file = join(folder, "broken");
    await writeFile(file, "#!/no/such/interpreter\n");
    await chmod(file, 0o755);
    const { result, notes } = await open(URL_, { BROWSER: file });
    expect(result).toBe("none");
    expect(notes).toEqual([expect.stringContaining("broken could not be started")]);
  });

  test("a program that fails -> a note with its code", async () => {
    const { folder } = await program();
    const file = join(folder, "failing");
    await writeFile(file, "#!/bin/sh\nexit 3\n");
    await chmod(file, 0o755);
    const { result, notes } = await open(URL_, { BROWSER: file });
    expect(result).toBe("started");
    await expect.poll(() => notes).toEqual(["failing ended with code 3"]);
  });

  test.each([
    ["no screen", URL_, {}],
    ["BROWSER names nothing that exists", URL_, { BROWSER: "/no/such/browser" }],
    ["an address with another scheme", "file:///etc/passwd", { BROWSER: "/bin/true" }],
    ["plain http to another machine", "http://as.test/", { BROWSER: "/bin/true" }],
  ])("%s -> none, without a note", async (_title, url, env) => {
    expect(await open(url, env)).toEqual({ result: "none", notes: [] });
  });
});
