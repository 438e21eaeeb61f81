/** Owns: what the doctor makes of what a shell in the room of a server says. test/worker/rooms.test.ts has a real room. */
import { expect, test } from "vitest";
import { judge } from "../../../../../workers/connection/doctor/sandbox.ts";

const looked = { hidden: ["/home/me/.ssh"], written: ["/tmp"] };
const judged = (network: boolean, ...lines: string[]) => {
  const plan = { rules: [], data: "", temp: "/tmp", nothing: "", cwd: "/", network };
  const { severity, title, detail } = judge("s", plan, looked, [...lines, "done"].join("\n"));
  return `${severity}: ${title} ${detail ?? ""}`.trim();
};

const HOLDS = "ok: Its sandbox holds: 1 hidden place cannot be read from inside. It can write /tmp, and has";

test.each([
  ["nothing is seen", false, ["written 1"], `${HOLDS} no network.`],
  ["a network that it may have", true, ["written 1", "network"], `${HOLDS} a network.`],
  [
    "a network that it may not have",
    false,
    ["written 1", "network"],
    "error: From inside its sandbox, the network can be reached, which should be closed.",
  ],
  [
    "a hidden path is seen",
    false,
    ["seen 1 id_rsa"],
    "error: From inside its sandbox, /home/me/.ssh can be read, which should be hidden.",
  ],
])("%s", (_, network, lines, expected) => {
  expect(judged(network, ...lines)).toBe(expected);
});
