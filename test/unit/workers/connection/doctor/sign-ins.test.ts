/** Owns: what the doctor says of the place of tokens. */
import { expect, test } from "vitest";
import type { Finding, SignInPlace } from "../../../../../src/shared/protocol/person.ts";
import { SignInProblem } from "../../../../../workers/connection/auth/model/model.ts";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import { checkSignIns } from "../../../../../workers/connection/doctor/sign-ins.ts";
import { makeInput, makeMachine } from "./support.ts";

const at = (server: string, place: SignInPlace["place"]): SignInPlace => ({
  id: server,
  server,
  host: "h",
  place,
});
const LOCKED = new SignInProblem("system-store", { what: "it is locked" });

/** `fails`: the store cannot be used. Throws if it is asked although nothing is there or goes there. */
async function found(
  signIns: SignInPlace[],
  {
    tokenStore = "file",
    fails = false,
    named,
  }: { tokenStore?: "file" | "system"; fails?: boolean; named?: string } = {},
): Promise<Finding[]> {
  const isUsed = tokenStore === "system" || signIns.some(({ place }) => place === "system");
  const machine = makeMachine({
    signIns: async () => signIns,
    probeTokenStore: async () => {
      if (fails || !isUsed) throw LOCKED;
    },
  });
  return checkSignIns(makeInput([], { machine, named, settings: { ...DEFAULT_SETTINGS, tokenStore } }));
}

const both = [at("a", "file"), at("b", "system"), at("c", "system")];

test.each([
  ["nobody signed in", [], {}, []],
  ["files", [at("a", "file")], {}, [["ok", "The tokens are kept: 1 sign-in in private files."]]],
  ["nobody signed in, the store is wanted", [], { tokenStore: "system" }, []],
  [
    "the store alone",
    [at("b", "system")],
    { tokenStore: "system" },
    [["note", "The tokens are kept: 1 sign-in in the system's credential store."]],
  ],
  [
    "both, the setting is off",
    both,
    {},
    [
      [
        "note",
        "The tokens are kept: 2 sign-ins in the system's credential store, 1 sign-in in private files.",
      ],
    ],
  ],
  [
    "both, the store is wanted",
    both,
    { tokenStore: "system" },
    [["warning", 'Tokens are still in files, although "tokenStore" is "system": a.']],
  ],
  [
    "the store cannot be used",
    [],
    { tokenStore: "system", fails: true },
    [["error", "The system's credential store cannot be used: it is locked."]],
  ],
  [
    "the store cannot be used, and the setting is off",
    both,
    { fails: true },
    [["error", "The system's credential store cannot be used: it is locked."]],
  ],
  ["another server is named", both, { named: "d" }, []],
] as const)("%s", async (_name, signIns, options, expected) => {
  const findings = await found([...signIns], options);
  expect(findings.map(({ severity, title }) => [severity, title])).toEqual(expected);
  for (const { severity, remedy } of findings)
    expect(remedy !== undefined).toBe(severity === "error" || severity === "warning");
});
