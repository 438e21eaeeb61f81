/**
 * The sandbox of the named server, tried from inside: a shell in the same room says what it can read, write and reach. Nothing
 * of the server runs for that.
 */

import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { Finding } from "../../../src/shared/protocol/person.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { fillPath, pathsOf } from "../config/entry/interpolate.ts";
import { type Sandbox, sandboxOf } from "../config/entry/sandbox.ts";
import type { Plan } from "../room/plan.ts";
import { explainRoom, roomLaunch } from "../room/room.ts";
import type { DoctorInput, Examined } from "./check.ts";

/** Each path is an argument. Says `hidden <n>` for one that is empty or closed, `written <n>`, and whether there is a network. */
const LOOK = `
for path do
  at=$((at + 1))
  [ "$path" = -- ] && writes=1 && at=0 && continue
  if [ -n "$writes" ]; then
    (: > "$path/.doctor-$$") 2>/dev/null && rm -f "$path/.doctor-$$" && echo "written $at"
  elif [ -d "$path" ]; then
    [ -n "$(ls -A "$path" 2>/dev/null)" ] && echo "seen $at"
  elif [ -s "$path" ] && [ -r "$path" ]; then echo "seen $at"
  fi
done
grep -qv -e '^ *lo:' -e '|' /proc/net/dev 2>/dev/null && echo network
echo done`;

const PRINTED_BYTES = 64 * 1024;
const PATHS = 500;

const numbersOf = (printed: string, word: string): number[] =>
  [...printed.matchAll(new RegExp(`^${word} (\\d+)$`, "gm"))].map(([, number]) => Number(number));

/** What the rules promise and the room does not keep, and what holds. */
function judge(server: string, plan: Plan, { hidden, written }: Looked, printed: string): Finding {
  const seen = numbersOf(printed, "seen").map((number) => hidden[number - 1] ?? "");
  const about = { id: "sandbox", server } as const;
  if (seen.length > 0) {
    const title = `From inside its sandbox, ${seen[0]} can be read, which should be hidden.`;
    return { ...about, severity: "error", title, remedy: "Switch the server off, and tell the maintainers." };
  }
  const at = numbersOf(printed, "written").map((number) => written[number - 1] ?? "");
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
    made.plan.rules.filter(({ effect }) => effects.includes(effect)).map(({ path }) => path);
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
