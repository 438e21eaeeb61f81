/** Owns: which sockets are trusted, and what a hostile program at one does to its connection. Real sockets, real files. */
import { execFileSync } from "node:child_process";
import { chmod, chown, mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parseEntry } from "../../../../../workers/connection/config/entry/definition.ts";
import { describeTarget } from "../../../../../workers/connection/config/trust/question.ts";
import type { ConnectOptions } from "../../../../../workers/connection/mcp/connection.ts";
import { connect } from "../../../../../workers/connection/transports/transports.ts";
import { connectOptions, resultOf } from "../../../../support/http-server.ts";
import { PATIENCE_MS } from "../../../../support/patience.ts";
import { tempFolder } from "../../../temp-folder.ts";

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

async function listen(
  path: string,
  onSocket: (socket: Socket) => void = () => undefined,
): Promise<() => void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const end = (): void => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  onTestFinished(end);
  return end;
}

/** Answers each request as a server does, until `gone` names a method that it does not answer. */
const answering =
  (gone?: string) =>
  (socket: Socket): void => {
    let rest = "";
    socket.on("data", (chunk) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const message = JSON.parse(line);
        if (message.method === gone) socket.destroy();
        else if (message.id !== undefined) socket.write(`${resultOf(message)}\n`);
      }
    });
  };

const open = (socket: string, more: Partial<ConnectOptions> = {}) =>
  connect(connectOptions({ socket }, { cwd: "/", ...more }));

describe.skipIf(process.platform === "win32")("a path that is not used", () => {
  test.each<[what: string, make: (folder: string) => Promise<string>, said: RegExp]>([
    ["nothing", async (folder) => join(folder, "none"), /there is no socket at/],
    [
      "a file",
      async (folder) => {
        await writeFile(join(folder, "file"), "x");
        return join(folder, "file");
      },
      /is no socket/,
    ],
    [
      "a FIFO",
      async (folder) => {
        execFileSync("mkfifo", [join(folder, "fifo")]);
        return join(folder, "fifo");
      },
      /is no socket/,
    ],
    ["a folder", async (folder) => folder, /is no socket/],
    [
      "a socket that every user may write",
      async (folder) => {
        await listen(join(folder, "open"));
        await chmod(join(folder, "open"), 0o777);
        return join(folder, "open");
      },
      /can be written by every user/,
    ],
    [
      "a socket in a folder in which others may replace it",
      async (folder) => {
        await mkdir(join(folder, "all", "mine"), { recursive: true });
        await listen(join(folder, "all", "mine", "s"));
        await chmod(join(folder, "all"), 0o777);
        return join(folder, "all", "mine", "s");
      },
      /another user can replace .*, by its folder .*\/all\./,
    ],
    [
      "a link in circles",
      async (folder) => {
        await symlink(join(folder, "a"), join(folder, "b"));
        await symlink(join(folder, "b"), join(folder, "a"));
        return join(folder, "a");
      },
      /cannot be connected: ELOOP/,
    ],
    [
      "a path that is too long",
      async (folder) => {
        // Node makes the socket by the short way.
        const long = join(folder, "d".repeat(100));
        await mkdir(long);
        await listen(join(folder, "s"));
        execFileSync("mv", [join(folder, "s"), long]);
        return join(long, "s");
      },
      /is too long: a socket's path has at most 103 bytes/,
    ],
  ])("%s", async (_what, make, said) => {
    const path = await make(await tempFolder());
    await expect(open(path)).rejects.toMatchObject({
      code: "connect_failed",
      message: expect.stringMatching(said),
    });
  });

  test.skipIf(!isRoot).each(["the socket", "the folder", "what a link leads to"])(
    "%s belongs to another user",
    async (what) => {
      const folder = await tempFolder();
      const theirs = join(folder, "theirs");
      await mkdir(theirs);
      await listen(join(theirs, "s"), answering());
      await chown(what === "the folder" ? theirs : join(theirs, "s"), NOBODY, NOBODY);
      await symlink(join(theirs, "s"), join(folder, "link"));
      const path = what === "what a link leads to" ? join(folder, "link") : join(theirs, "s");
      await expect(open(path)).rejects.toMatchObject({
        message: expect.stringMatching(/belongs to another user|another user can replace/),
      });
      await chown(what === "the folder" ? theirs : join(theirs, "s"), 0, 0);
      await (await open(path)).close({ termMs: 100, killMs: 200 });
    },
  );

  test("one whose program has ended", async () => {
    const folder = await tempFolder();
    const script = `require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
    expect(() => execFileSync(process.execPath, ["-e", script, join(folder, "s")])).toThrow();
    await expect(open(join(folder, "s"))).rejects.toMatchObject({
      message: expect.stringContaining("nobody listens at"),
    });
  });
});

test.skipIf(process.platform === "win32")(
  "~/, a variable and the session's folder lead to the socket",
  async () => {
    const home = await tempFolder();
    await listen(join(home, "s"), answering());
    vi.stubEnv("HOME", home);
    vi.stubEnv("SOCKET_OF_TEST", join(home, "s"));
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const path of ["~/s", "\u0024{SOCKET_OF_TEST}", "./s"]) {
      const connection = await open(path, { cwd: home });
      expect(connection.transport).toBe("socket");
      await connection.close({ termMs: 100, killMs: 200 });
    }
  },
);

describe.skipIf(process.platform === "win32")("a hostile program at the socket", () => {
  test("an endless line -> refused at the limit, and the connection is closed", async () => {
    const path = join(await tempFolder(), "s");
    const closed = Promise.withResolvers<void>();
    await listen(path, (socket) => {
      const flood = (): void => {
        while (socket.writable && socket.write("x".repeat(65_536)));
      };
      socket.on("drain", flood).on("close", () => closed.resolve());
      flood();
    });
    await expect(open(path, { maxMessageBytes: 1_000_000 })).rejects.toMatchObject({
      code: expect.stringMatching(/message_too_large|connect_failed/),
    });
    await closed.promise;
  });

  test("one that reads nothing -> the start ends in time, and so does the close", async () => {
    const path = join(await tempFolder(), "s");
    await listen(path, (socket) => socket.pause());
    const signal = AbortSignal.timeout(300);
    await expect(open(path, { signal })).rejects.toMatchObject({ code: "cancelled" });
  });

  test("gone in a call -> the call fails with the reason, and the end is told once", async () => {
    const path = join(await tempFolder(), "s");
    await listen(path, answering("tools/call"));
    const onClosed = vi.fn();
    const connection = await open(path, { onClosed });
    const { signal } = new AbortController();
    const call = { tool: "echo", args: {}, timeoutMs: 20_000, signal, onProgress: () => undefined };
    await expect(connection.callTool(call)).rejects.toThrow();
    await vi.waitFor(() => expect(onClosed).toHaveBeenCalledTimes(1), PATIENCE_MS);
    expect(connection.whyClosed()).toBe("web closed its socket.");
    await connection.close({ termMs: 100, killMs: 200 });
  });
});

describe("an entry", () => {
  const parse = (raw: object, origin: "user" | "project-file" = "user") =>
    parseEntry("s", raw, { file: "/mcp.json", origin });

  test.each([
    [{ socket: "/s", command: "x" }, "command", "both socket and command are given"],
    [{ socket: "/s", url: "https://a.example" }, "url", "both socket and url are given"],
    [{ socket: "/s", type: "stdio" }, "type", "both socket and type are given"],
    [{ socket: "" }, "socket", ""],
    [{ socket: "x".repeat(5_000) }, "socket", ""],
  ])("%j -> a mistake", (raw, key, message) => {
    const { definition, mistakes } = parse(raw);
    expect(definition).toBeUndefined();
    expect(mistakes[0]?.path).toEqual([key]);
    expect(mistakes[0]?.message).toContain(message);
  });

  test("keys of other servers have no effect, and it says so", () => {
    const raw = {
      socket: "/s",
      sandbox: true,
      inheritEnv: ["A"],
      shared: true,
      env: { A: "1" },
      headers: { B: "2" },
    };
    const { definition, mistakes } = parse(raw);
    expect(definition?.target).toEqual({ kind: "socket", socket: "/s" });
    expect(mistakes.map(({ path }) => path[0]).toSorted()).toEqual([
      "env",
      "headers",
      "inheritEnv",
      "sandbox",
      "shared",
    ]);
    expect(mistakes.every(({ severity }) => severity === "warning")).toBe(true);
  });

  test("a project's needs a yes, whose question names the socket", () => {
    const { definition } = parse({ socket: "./s.sock" }, "project-file");
    expect(definition?.project).toBe(true);
    expect(definition && describeTarget(definition)).toBe("what listens at the socket ./s.sock");
  });
});
