/** Where the stored sign-ins are, and whether the system's credential store can be used. Nobody is asked to unlock it. */
import type { Finding } from "../../../src/shared/protocol/person.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import { whyUnusable } from "../auth/store/in-system.ts";
import type { DoctorInput } from "./check.ts";

const NAMES = 10;

export async function checkSignIns({ agentDir, settings, machine, named }: DoctorInput): Promise<Finding[]> {
  const all = await machine.signIns(agentDir);
  const found = named === undefined ? all : all.filter(({ server }) => server === named);
  const inFiles = found.filter(({ place }) => place === "file");
  const inSystem = found.length - inFiles.length;
  const wantsSystem = settings.tokenStore === "system";
  const places = [
    ...(inSystem === 0 ? [] : [`${counted(inSystem, "sign-in")} in the system's credential store`]),
    ...(inFiles.length === 0 ? [] : [`${counted(inFiles.length, "sign-in")} in private files`]),
  ].join(", ");
  const kept: Finding = {
    id: "sign-ins",
    // Where they are by default is nothing to tell.
    severity: inSystem === 0 ? "ok" : "note",
    title: `The tokens are kept: ${places}.`,
  };
  const where = places === "" ? [] : [kept];
  if (!wantsSystem && inSystem === 0) return where;
  const why = await machine.probeTokenStore().then(
    () => undefined,
    (error: unknown) => {
      const what = whyUnusable(error);
      if (what === undefined) throw error;
      return what;
    },
  );
  if (why !== undefined) {
    return [
      {
        id: "sign-ins",
        severity: "error",
        title: `The system's credential store cannot be used: ${why}.`,
        ...(places === "" ? {} : { detail: `The tokens are kept: ${places}.` }),
        remedy: wantsSystem
          ? 'Put that right. "tokenStore": "system" in your settings wants it; nothing is written to a file in its place.'
          : "Put that right, or sign in again after the files in mcp-oauth are removed.",
      },
    ];
  }
  if (!wantsSystem || inFiles.length === 0) return where;
  const names = [...new Set(inFiles.map(({ server }) => server))];
  const more = names.length > NAMES ? ` and ${names.length - NAMES} more` : "";
  return [
    {
      id: "sign-ins",
      severity: "warning",
      title: `Tokens are still in files, although "tokenStore" is "system": ${names.slice(0, NAMES).join(", ")}${more}.`,
      detail: "Each moves with its next renewal.",
      remedy: "pi-mcp-threads sign-ins move --to system moves all at once.",
    },
  ];
}
