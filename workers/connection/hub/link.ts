/**
 * A connection to the hub of shared servers: finds the hub that runs, or starts one, and proves to each other that both are of
 * the same user. A time-out never removes the socket of a hub that is alive; a stale one is removed by whoever holds the lock.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import manifest from "../../../package.json" with { type: "json" };
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { HubBoot } from "../../hub.ts";
import { nodeFiles } from "../../shared/files/file-system.ts";
import { withLock } from "../../shared/files/lock.ts";
import { codeOf } from "../../shared/files/read-regular.ts";
import {
  addressOf,
  ensureFolder,
  type HubPlace,
  HubUnusable,
  hasFolder,
  hubPlace,
  placeFacts,
  readSecret,
  writeSecret,
} from "../../shared/hub/place.ts";
import { HELLO_BYTES, isProof, NONCE_BYTES, newNonce, proofOf } from "../../shared/hub/wire.ts";
import { OwnFile } from "../../shared/own-file.ts";
import { onWindows, systemShell } from "../../shared/programs/processes.ts";

/** Below the agent folder. */
export const HUB_LOG = "mcp-hub.log";

const isRaw = import.meta.url.endsWith(".ts");
const hubFile = new OwnFile(fileURLToPath(new URL(isRaw ? "../../hub.ts" : "./hub.js", import.meta.url)));
hubFile.remember();

/** All that the hub itself may see of the environment: what servers get comes with each of them. */
const HUB_ENVIRONMENT = [
  "HOME",
  "USERPROFILE",
  "TMPDIR",
  "TEMP",
  "TMP",
  "SystemRoot",
  "ComSpec",
  "LANG",
  "LC_ALL",
  "XDG_RUNTIME_DIR",
];

/**
 * The hub hands bytes on and keeps little, so a small room for young objects (V8's default is 16 MiB, three times) costs it no
 * time, and it does not grow with what has passed through it. Bun does not know the flag.
 */
const HUB_FLAGS = ["--max-semi-space-size=2"];

export const placeOf = (agentDir: string): HubPlace => hubPlace(placeFacts(agentDir, manifest.version));

/** The hub closes a connection when it ends, or when too many have not proved themselves yet. */
const CLOSED_RETRY_MS = 50;
/** Each look is a connection, which the hub notes as one without a proof. */
const SECRET_RETRY_MS = 500;

/** A program that does not answer at the hub's place would hold up each server of the session. */
const unusable = new Map<string, { why: HubUnusable; untilMs: number }>();

/**
 * Connects to the hub, and starts one if there is none. Throws `HubUnusable` with the reason: then there is no hub for this
 * session. For `LIMITS.retryAfterFailureMs` the same reason is told without looking again, unless a person waits.
 */
export async function openHub(agentDir: string, isWanted = true): Promise<Socket> {
  const before = unusable.get(agentDir);
  if (before && !isWanted && performance.now() < before.untilMs) throw before.why;
  unusable.delete(agentDir);
  try {
    const place = placeOf(agentDir);
    await ensureFolder(place);
    return (await connectTo(place)) ?? (await startAndConnect(agentDir, place));
  } catch (error) {
    const why = error instanceof HubUnusable ? error : new HubUnusable(messageOf(error), { cause: error });
    unusable.set(agentDir, { why, untilMs: performance.now() + LIMITS.retryAfterFailureMs });
    throw why;
  }
}

/** Connects to the hub that runs; undefined if none does. Makes no folder, which nobody would remove. Throws `HubUnusable`. */
export async function findHub(agentDir: string): Promise<Socket | undefined> {
  const place = placeOf(agentDir);
  return (await hasFolder(place)) ? connectTo(place) : undefined;
}

async function connectTo(place: HubPlace): Promise<Socket | undefined> {
  const until = performance.now() + LIMITS.hubStartMs;
  for (;;) {
    const secret = await readSecret(place);
    if (!secret) return undefined;
    const socket = connect(addressOf(place, secret));
    // Without a listener an error of the socket would end the worker.
    socket.on("error", () => undefined);
    try {
      await once(socket, "connect");
    } catch (error) {
      const code = codeOf(error) ?? "";
      if (code === "ENOENT" || code === "ECONNREFUSED") return undefined;
      // The hub has not taken those yet that connected before.
      if (code !== "EAGAIN") throw new HubUnusable(`its socket cannot be used: ${messageOf(error)}`);
    }
    if (!socket.destroyed && (await proveEachOther(socket, secret.key, place))) return socket;
    if (performance.now() > until) throw new HubUnusable(`${place.socket} closes every connection`);
    await sleep(CLOSED_RETRY_MS * (0.5 + Math.random()));
  }
}

/** False if the connection was closed before. Throws `HubUnusable` if the other side is not this user's hub. */
async function proveEachOther(socket: Socket, key: Buffer, place: HubPlace): Promise<boolean> {
  const session = newNonce();
  socket.write(session);
  const answer = await readHello(socket);
  if (answer === "closed") return false;
  if (answer === "late") {
    socket.destroy();
    throw new HubUnusable(`${place.socket} does not answer`);
  }
  const nonces = { session, hub: answer.subarray(0, NONCE_BYTES) };
  if (!isProof(answer.subarray(NONCE_BYTES), proofOf("hub", key, nonces))) {
    socket.destroy();
    throw new HubUnusable(`another program answers at ${place.socket}`);
  }
  socket.write(proofOf("session", key, nonces));
  return true;
}

function readHello(socket: Socket): Promise<Buffer | "closed" | "late"> {
  return new Promise((resolve) => {
    const settle = (answer: Buffer | "closed" | "late"): void => {
      clearTimeout(timer);
      for (const event of ["readable", "end", "close"]) socket.off(event, look);
      resolve(answer);
    };
    const look = (): void => {
      const read: Buffer | null = socket.read(HELLO_BYTES);
      if (read?.length === HELLO_BYTES) settle(read);
      else if (read !== null || socket.readableEnded || socket.destroyed) settle("closed");
    };
    const timer = setTimeout(() => settle("late"), LIMITS.hubStartMs);
    for (const event of ["readable", "end", "close"]) socket.on(event, look);
  });
}

const starting = new Map<string, Promise<unknown>>();

/** A hub that another session tells to end may end between its start and the connection. */
const STARTS = 3;

async function startAndConnect(agentDir: string, place: HubPlace): Promise<Socket> {
  for (let start = 0; start < STARTS; start++) {
    await startOnce(agentDir, place);
    const socket = await connectTo(place);
    if (socket) return socket;
  }
  throw new HubUnusable("it has ended right after its start");
}

/** All servers of this thread wait for one start. */
async function startOnce(agentDir: string, place: HubPlace): Promise<void> {
  const running = starting.get(place.folder);
  if (running) {
    await running.catch(() => undefined);
    return;
  }
  const start = withLock(place.lock, { files: nodeFiles }, () => startUnlessThere(agentDir, place));
  starting.set(place.folder, start);
  try {
    await start;
  } finally {
    starting.delete(place.folder);
  }
}

/** A hub that runs without its secret, as after a clearing of the temp folder, writes it again when it looks for it. */
async function hasItsSecretSoon(place: HubPlace): Promise<boolean> {
  const until = performance.now() + 1.5 * LIMITS.hubLookMs;
  while ((await isListening(place)) && performance.now() < until) {
    await sleep(SECRET_RETRY_MS);
    if (await readSecret(place)) return true;
  }
  return false;
}

async function isListening({ socket: path }: HubPlace): Promise<boolean> {
  if (process.platform === "win32") return false;
  const socket = connect(path);
  socket.on("error", () => undefined);
  const found = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return found;
}

/** Runs while nobody else starts a hub. */
async function startUnlessThere(agentDir: string, place: HubPlace): Promise<void> {
  const found = await connectTo(place);
  if (found) {
    found.destroy();
    return;
  }
  if (!(await readSecret(place))) {
    if (await hasItsSecretSoon(place)) return;
    await writeSecret(place);
  }
  if (process.platform !== "win32") await nodeFiles.remove(place.socket);
  if (!hubFile.isKnown()) await hubFile.find();
  const boot: HubBoot = { place, logFile: join(agentDir, HUB_LOG) };
  const env = Object.fromEntries(
    HUB_ENVIRONMENT.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
  const flags = process.versions.bun === undefined ? HUB_FLAGS : [];
  const command = [process.execPath, ...flags, hubFile.path, JSON.stringify(boot)];
  // Through a shell that ends at once: a session may be below an MCP server, whose end takes along all that descends from it.
  const [program = "", ...args] = onWindows ? command : [systemShell(), "-c", '"$@" &', "sh", ...command];
  const hub = spawn(program, args, {
    // Bun obeys what lies in the folder in which it starts, and anybody may write above this one. Windows would not let it go.
    cwd: onWindows ? dirname(place.folder) : place.folder,
    // Pi as a Bun program runs a file only when it is told to be Bun.
    env: process.versions.bun === undefined ? env : { ...env, BUN_BE_BUN: "1" },
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
    windowsHide: true,
  });
  hub.unref();
  // Node makes no streams if no file descriptor is left.
  const stdout = hub.stdout as Readable | undefined;
  try {
    const said = await firstLine(hub);
    if (said !== "ready") throw new HubUnusable(said);
  } finally {
    stdout?.destroy();
  }
}

function firstLine(hub: ReturnType<typeof spawn>): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const timer = setTimeout(() => reject(new HubUnusable("it was not ready in time")), LIMITS.hubStartMs);
    const settle = (): void => {
      clearTimeout(timer);
      resolve(said.trim() || "it has ended right after its start");
    };
    hub.once("error", (error) => {
      clearTimeout(timer);
      reject(new HubUnusable(`it cannot be started: ${error.message}`));
    });
    hub.stdout?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("\n")) settle();
    });
    hub.stdout?.once("close", settle);
  });
}
