/** Owns: a server behind a socket in the life of a session: calls, the end of its program, and a live edit. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configure, createPlace, fixtures, onCleanup, readIfThere, start, textOf, until } from "./support.ts";

/** A program that serves each connection by a process of the fixture. */
async function listen(path: string): Promise<{ end: () => Promise<unknown> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const child = spawn(process.execPath, [join(fixtures, "servers", "shows.mjs")], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    child.stdin.on("error", () => undefined);
    socket.on("error", () => undefined).on("close", () => child.kill());
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
  });
  server.listen(path);
  await once(server, "listening");
  const end = async (): Promise<unknown> => {
    if (!server.listening) return;
    server.close();
    for (const socket of sockets) socket.destroy();
    return once(server, "close");
  };
  onCleanup(async () => void (await end()));
  return { end };
}

test.skipIf(process.platform === "win32")(
  "calls; its program ends -> the next call says so; it is back -> a call works; an edit leads to another socket",
  async () => {
    const place = await createPlace();
    const [first, second] = ["one.sock", "two.sock"].map((name) => join(place.agentDir, name)) as [
      string,
      string,
    ];
    const program = await listen(first);
    const at = await start({ s: { socket: first } as never }, { place });
    const show = async (text: string) => textOf(await at.call("s", "show", { text }));
    expect(await show("hi")).toBe("hi");
    const statusOf = async () => (await at.runtime.ask("status", {})).servers[0];
    expect(await statusOf()).toMatchObject({ transport: "socket", state: "connected" });
    expect(await statusOf()).not.toHaveProperty("pid");
    await program.end();
    await until(async () => ((await statusOf())?.state === "connected" ? undefined : true));
    await expect(at.call("s", "show", { text: "x" })).rejects.toMatchObject({
      message: expect.stringContaining("there is no socket at"),
    });
    await listen(first);
    await at.runtime.ask("reconnect", { server: "s" });
    expect(await show("again")).toBe("again");
    await listen(second);
    await configure(place, { s: { socket: second } as never });
    await until(async () => {
      const { runs } = await at.runtime.ask("serverDetails", { server: "s" });
      return runs.includes("two.sock") ? true : undefined;
    });
    expect(await show("moved")).toBe("moved");
  },
);

test.skipIf(process.platform === "win32")(
  "what Pi itself writes into its entry leaves it a server: off, on, and a tool that is always allowed",
  async () => {
    const place = await createPlace();
    const path = join(place.agentDir, "one.sock");
    await listen(path);
    const at = await start({ s: { socket: path, approve: "always" } as never }, { place });
    const statusOf = async () => (await at.runtime.ask("status", {})).servers[0];
    const switched = async (enabled: boolean) => {
      await at.runtime.ask("setEnabled", { server: "s", enabled, project: false });
      return statusOf();
    };
    expect(await switched(false)).toMatchObject({ name: "s", state: "disabled" });
    expect(await switched(true)).toMatchObject({ name: "s", transport: "socket" });
    const first = at.call("s", "show", { text: "hi" });
    (await until(async () => at.user.asked[0])).answer("always");
    expect(textOf(await first)).toBe("hi");
    const allowed = async () => (await readIfThere(join(place.agentDir, "mcp.json"))).includes("allow");
    await until(async () => (await allowed()) || undefined);
    expect(textOf(await at.call("s", "show", { text: "again" }))).toBe("again");
    expect(at.user.asked).toHaveLength(1);
  },
);
