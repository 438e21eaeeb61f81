/**
 * The sandbox of the named server, tried from inside: a shell in the same room says what it can read, write and reach. Nothing
 * of the server runs for that.
 */
import { join, sep } from "node:path";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { Finding } from "../../../src/shared/protocol/person.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { fillPath, pathsOf } from "../config/entry/interpolate.ts";
import { type Sandbox, sandboxOf } from "../config/entry/sandbox.ts";
import type { Plan } from "../room/plan.ts";
import { explainRoom, roomLaunch } from "../room/room.ts";
import type { DoctorInput, Examined } from "./check.ts";

/**
 * Each path is an argument. Says `seen <n>` for a file with text and `seen <n> <name>` for what a folder holds, `written <n>`, and
 * on Linux whether there is a network: a route or an address, since a kernel with tunnels gives each network namespace devices of
 * them that lead nowhere.
 */
const LOOK = `
for path do
  at=$((at + 1))
  [ "$path" = -- ] && writes=1 && at=0 && continue
  if [ -n "$writes" ]; then
    (: > "$path/.doctor-$$") 2>/dev/null && rm -f "$path/.doctor-$$" && echo "written $at"
  elif [ -d "$path" ]; then
    ls -A "$path" 2>/dev/null | head -n 50 | while IFS= read -r name; do echo "seen $at $name"; done
  elif [ -s "$path" ] && [ -r "$path" ]; then echo "seen $at"
  fi
done
{ grep -qv '^Iface' /proc/net/route || grep -qv ' lo$' /proc/net/if_inet6; } 2>/dev/null && echo network
echo done`;

const PRINTED_BYTES = 64 * 1024;
const PATHS = 500;

const linesOf = (printed: string, word: string): [number: number, name: string][] =>
  [...printed.matchAll(new RegExp(`^${word} (\\d+)(?: (.+))?$`, "gm"))].map(([, at, name = ""]) => [
    Number(at) - 1,
    name,
  ]);

/** Whether the name in a hidden folder is of the room itself, which shows something below it. */
const isShown = ({ rules }: Plan, folder: string, name: string): boolean =>
  name !== "" &&
  rules.some(({ path }) => path === join(folder, name) || path.startsWith(join(folder, name, sep)));

/** What the rules promise and the room does not keep, and what holds. */
export function judge(server: string, plan: Plan, { hidden, written }: Looked, printed: string): Finding {
  const seen = linesOf(printed, "seen").flatMap(([at, name]) => {
    const path = hidden[at] ?? "";
    return isShown(plan, path, name) ? [] : [path];
  });
  const about = { id: "sandbox", server } as const;
  const broken = (title: string): Finding => {
    return { ...about, severity: "error", title, remedy: "Switch the server off, and tell the maintainers." };
  };
  if (seen.length > 0)
    return broken(`From inside its sandbox, ${seen[0]} can be read, which should be hidden.`);
  if (!plan.network && /^network$/m.test(printed))
    return broken("From inside its sandbox, the network can be reached, which should be closed.");
  const at = linesOf(printed, "written").map(([number]) => written[number] ?? "");
  const network = !plan.network ? "no network" : "a network";
  return {
    ...about,
    severity: "ok",
    title: `Its sandbox holds: ${counted(hidden.length, "hidden place")} cannot be read from inside.`,
    detail: `It can write ${at.join(", ")}, and has ${network}.`,
  };
}

interface Looked {
  hidden: string[];
  written: string[];
}

async function tryRoom(
  server: Examined,
  room: Sandbox,
  { machine, agentDir }: DoctorInput,
  signal: AbortSignal,
): Promise<Finding> {
  const { name, definition } = server;
  const { target } = definition;
  const folder = target.kind === "stdio" ? fillPath(target.cwd ?? "", machine) : undefined;
  const cwd = pathsOf(machine.platform).resolve(machine.cwd, folder?.missing.length === 0 ? folder.text : "");
  const env = Object.fromEntries(
    Object.entries(machine.env).filter((one): one is [string, string] => one[1] !== undefined),
  );
  const place = { agentDir, session: machine.cwd, home: machine.home, own: {} };
  const made = await roomLaunch({ program: "/bin/sh", args: [], env, cwd }, definition, room, place);
  const ruled = (effects: readonly string[]): string[] =>
    made.plan.rules.filter(({ effect, isPin }) => effects.includes(effect) && !isPin).map(({ path }) => path);
  const hidden = ruled(["empty", "closed"])
    .filter((path) => path !== made.plan.temp)
    .slice(0, PATHS);
  const written = [...new Set([...ruled(["write"]), made.plan.temp, machine.home, machine.cwd, cwd])].slice(
    0,
    PATHS,
  );
  const { launch } = made;
  const asked = { ...launch, args: [...launch.args, "-c", LOOK, "sh", ...hidden, "--", ...written] };
  const { stdout, stderr } = await machine.printedBy(asked, PRINTED_BYTES, signal);
  if (/^done$/m.test(stdout)) return judge(name, made.plan, { hidden, written }, stdout);
  throw explainRoom(name, stderr) ?? new ThreadsError("spawn_failed", "its sandbox was not answered in time");
}

/** Only for the named server: to start a shell for each would take long. */
export async function checkSandbox(input: DoctorInput, signal: AbortSignal): Promise<Finding[]> {
  const [server] = input.servers;
  const room = server && roomOf(server.definition);
  if (input.named === undefined || !server || !room) return [];
  try {
    return [await tryRoom(server, room, input, signal)];
  } catch (error) {
    if (!(error instanceof ThreadsError)) throw error;
    const { message, remedy } = error;
    const title = message.replace(`${server.name}: its`, "Its");
    return [{ id: "sandbox", severity: "error", server: server.name, title, ...(remedy && { remedy }) }];
  }
}

const roomOf = ({ enabled, target, sandbox }: ServerDefinition): Sandbox | undefined =>
  enabled && target.kind === "stdio" ? sandboxOf(sandbox) : undefined;
