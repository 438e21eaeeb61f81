/**
 * Owns: credential stores of the system for tests: a stand-in for `secret-tool`, which does what libsecret's program does and,
 * if told so, what a broken, locked or hostile one does; and a real gnome-keyring on a session bus of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onCleanup } from "./cleanup.ts";
import { makeTempFolder, removeFolder } from "./temp-folder.ts";

/**
 * What the stand-in does in place of its work. `locked`: as 0.20 of secret-tool with a locked keyring and nobody to ask. `asks`: it
 * waits for ever. `floods`: it prints without end. `cuts`: it stores a part and says nothing. `dies`: code 3. `nobus`, `noservice`:
 * what libsecret says without a bus, and without a service on it. `other`: it answers with another's text. `odd`: with control
 * characters. `forgets`: it stores nothing and says yes.
 */
export type Misdeed =
  | "locked"
  | "asks"
  | "floods"
  | "cuts"
  | "dies"
  | "nobus"
  | "noservice"
  | "other"
  | "odd"
  | "forgets";

/**
 * With STAND_IN_WAITS in the environment it stores nothing before the file `go` is there. Items are files named by their attribute `item`. `runs` has a line for each run with its whole command line.
 */
const PROGRAM = `#!/bin/sh
place=PLACE
word=$1; shift
echo "$word $*" >> "$place/runs"
item=
while [ $# -gt 0 ]; do [ "$1" = item ] && item=$2; shift; done
file=$place/items/$item
misdeed=
[ -f "$place/misdeed" ] && misdeed=$(cat "$place/misdeed")
[ -f "$place/of-$item" ] && misdeed=$(cat "$place/of-$item")
[ -f "$place/only" ] && [ "$(cat "$place/only")" != "$word" ] && misdeed=
[ "$word" = store ] && [ -n "$STAND_IN_WAITS" ] && until [ -f "$place/go" ]; do sleep 0.02; done
case $misdeed in
  asks) exec sleep 600 ;;
  floods) exec yes "secret = $item" ;;
  dies) echo "secret-tool: a part of the secret" >&2; exit 3 ;;
  nobus) echo "secret-tool: Cannot autolaunch D-Bus without X11 \\$DISPLAY" >&2; exit 1 ;;
  noservice) echo "secret-tool: The name org.freedesktop.secrets was not provided by any .service files" >&2; exit 1 ;;
  other) printf '[/1]\\nlabel = other\\nsecret = %s\\n' "$(cat "$place/other")"; exit 0 ;;
  odd) printf '[/1]\\nsecret = \\033[31m\\007odd\\n'; exit 0 ;;
esac
case $word in
  store)
    [ "$misdeed" = locked ] && { echo "secret-tool: Cannot create an item in a locked collection" >&2; exit 1; }
    [ "$misdeed" = forgets ] && exit 0
    if [ "$misdeed" = cuts ]; then head -c 100 > "$file.$$"; else head -c 8192 > "$file.$$"; fi
    mv "$file.$$" "$file" ;;
  search)
    [ -f "$file" ] || exit 0
    echo "[/1]"; echo "label = of the stand-in"
    echo "attribute.item = $item" >&2
    [ "$misdeed" = locked ] && { echo "secret-tool: Cannot get secret of a locked object" >&2; exit 0; }
    echo "secret = $(cat "$file")"; echo "schema = org.freedesktop.Secret.Generic" ;;
  clear)
    [ "$misdeed" = locked ] && exit 1
    [ -f "$file" ] || exit 1
    rm -f "$file" ;;
esac
`;

export interface StandIn {
  /** For the environment: the program is found in the first folder of PATH. */
  env: Record<string, string | undefined>;
  /** Its own folder, outside of every agent folder. */
  folder: string;
  /** The texts that it holds. */
  texts(): Promise<string[]>;
  /** The command lines of its runs. */
  runs(): Promise<string[]>;
  /** `only`: for this word of the command line alone. None: it works. */
  misbehave(misdeed: Misdeed | undefined, only?: "store" | "search" | "clear"): Promise<void>;
}

async function ownFolder(name: string): Promise<string> {
  const folder = await makeTempFolder(`pmt-${name}`);
  onCleanup(() => removeFolder(folder));
  return folder;
}

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");

/** Puts the stand-in into the folder. `misdeeds`: of single items. */
export async function layStandIn(
  folder: string,
  misdeeds: Readonly<Record<string, Misdeed>> = {},
): Promise<void> {
  await mkdir(join(folder, "items"), { recursive: true });
  const program = join(folder, "secret-tool");
  await writeFile(program, PROGRAM.replace("PLACE", folder));
  await chmod(program, 0o755);
  await writeFile(join(folder, "other"), Buffer.from('{"of": "another program"}').toString("base64url"));
  for (const [item, misdeed] of Object.entries(misdeeds))
    await writeFile(join(folder, `of-${item}`), misdeed);
}

export async function standInStore(): Promise<StandIn> {
  const folder = await ownFolder("stand-in");
  await layStandIn(folder);
  return {
    env: { ...process.env, PATH: `${folder}:${process.env.PATH}` },
    folder,
    texts: async () => {
      const names = (await readdir(join(folder, "items"))).sort();
      return Promise.all(names.map((name) => readFile(join(folder, "items", name), "utf8")));
    },
    runs: async () => linesOf(await readFile(join(folder, "runs"), "utf8").catch(() => "")),
    misbehave: async (misdeed, only) => {
      for (const [name, value] of [
        ["misdeed", misdeed],
        ["only", only],
      ] as const) {
        if (value === undefined) await rm(join(folder, name), { force: true });
        else await writeFile(join(folder, name), value);
      }
    },
  };
}

const PASSWORD = "the password of the test's keyring";
const BUS_CONFIG = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type><listen>unix:path=PLACE/bus</listen><auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
  </policy>
</busconfig>`;

export interface Keyring {
  env: Record<string, string | undefined>;
  lock(): Promise<void>;
  unlock(): Promise<void>;
}

function endWithTest(child: ChildProcess): void {
  onCleanup(async () => {
    const ended = child.exitCode !== null || child.signalCode !== null ? undefined : once(child, "close");
    child.kill("SIGKILL");
    await ended;
  });
}

/**
 * A gnome-keyring whose only collection is unlocked. Nothing can ask on this bus: no service is started by it. The real
 * home and the person's own bus are not touched.
 */
export async function startKeyring(): Promise<Keyring> {
  const folder = await ownFolder("keyring");
  const [home, run] = [join(folder, "home"), join(folder, "run")];
  for (const path of [home, run]) await mkdir(path, { mode: 0o700 });
  await writeFile(join(folder, "bus.conf"), BUS_CONFIG.replace("PLACE", folder));
  const { DISPLAY: _, WAYLAND_DISPLAY: __, ...base } = process.env;
  const bus = spawn("dbus-daemon", [`--config-file=${folder}/bus.conf`, "--nofork", "--print-address"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  endWithTest(bus);
  const [address] = (await once(bus.stdout, "data")) as [Buffer];
  const env = {
    ...base,
    HOME: home,
    XDG_RUNTIME_DIR: run,
    XDG_DATA_HOME: join(home, "data"),
    XDG_CONFIG_HOME: join(home, "config"),
    DBUS_SESSION_BUS_ADDRESS: String(address).trim(),
  };
  const must = async (program: string, args: string[]): Promise<void> => {
    const child = spawn(program, args, { env, stdio: "ignore" });
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`${program} ended with code ${code}`);
  };
  const secrets = "org.freedesktop.secrets";
  const start = async (): Promise<ChildProcess> => {
    const daemon = spawn("gnome-keyring-daemon", ["--unlock", "--foreground", "--components=secrets"], {
      env,
      stdio: ["pipe", "ignore", "ignore"],
    });
    endWithTest(daemon);
    daemon.stdin?.end(PASSWORD);
    await must("gdbus", ["wait", "--session", "--timeout", "30", secrets]);
    return daemon;
  };
  let daemon = await start();
  return {
    env,
    lock: () =>
      must("gdbus", [
        ...["call", "--session", "--dest", secrets, "--object-path", "/org/freedesktop/secrets"],
        ...[
          "--method",
          "org.freedesktop.Secret.Service.Lock",
          "['/org/freedesktop/secrets/collection/login']",
        ],
      ]),
    // As the next login does: a new daemon reads what lies on the disk.
    unlock: async () => {
      const ended = once(daemon, "close");
      daemon.kill();
      await ended;
      daemon = await start();
    },
  };
}
