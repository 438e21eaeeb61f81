/** `sign-ins`: where each stored sign-in is, and its way to the system's credential store or back. */
import { serverName } from "../../report/server-name.ts";
import type { SignInPlace } from "../../shared/protocol/person.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { EXIT, usage } from "../console/failure.ts";
import type { Command, Context } from "./known.ts";

const HOST_CHARS = 200;
const PLACES = { file: "a file", system: "the system's credential store" } as const;

const nameOf = ({ server, host }: SignInPlace): string =>
  `${serverName(server)} (${oneLine(host, HOST_CHARS)})`;

/** Moves one after the other, so that the first failure leaves the others where they are. */
async function move({ console, options, signal, session }: Context): Promise<void> {
  const { to } = options;
  if (to !== "system" && to !== "file") throw usage("Say where to: --to system, or --to file.");
  const { runtime } = await session();
  const { signIns, tokenStore } = await runtime.ask("signIns", {}, signal);
  const moved: (SignInPlace & { keeps: boolean })[] = [];
  for (const signIn of signIns.filter(({ place }) => place !== to)) {
    const { id } = signIn;
    try {
      const done = await runtime.ask("moveSignIn", { id, to }, signal);
      if (done.how === "moved") moved.push({ ...signIn, place: to, keeps: done.keeps });
    } catch (error) {
      for (const one of moved) console.warn(`${nameOf(one)} is moved to ${PLACES[to]}.`);
      throw error;
    }
  }
  const kept = moved.filter(({ keeps }) => keeps);
  console.answer({ moved, tokenStore }, () =>
    moved.length === 0
      ? [`No sign-in is to be moved: ${signIns.length === 0 ? "there is none" : `all are in ${PLACES[to]}`}.`]
      : moved.map((one) => `${nameOf(one)} is moved to ${PLACES[to]}.`),
  );
  for (const one of kept)
    console.warn(`${PLACES.system} keeps the old tokens of ${nameOf(one)} until its next renewal.`);
  if (to === "system" && tokenStore === "file")
    console.note(
      'New sign-ins still go to files: write "tokenStore": "system" into the settings of your mcp.json.',
    );
}

export const signIns: Command = async (context) => {
  const { console, options, signal } = context;
  const [word] = context.arguments;
  const session = await context.session();
  await session.planned();
  if (word === "move") await move(context);
  else if (word !== undefined) throw usage(`sign-ins does not take ${JSON.stringify(word)}.`);
  else if (options.to !== undefined) throw usage("--to belongs to sign-ins move.");
  else {
    const report = await session.runtime.ask("signIns", {}, signal);
    const lines = report.signIns.map(
      ({ server, host, place }) => `${serverName(server)}\t${oneLine(host, HOST_CHARS)}\tin ${PLACES[place]}`,
    );
    console.answer(report, () => lines);
    if (lines.length === 0) console.note("Nobody is signed in to any server.");
    console.note(`New sign-ins go to ${PLACES[report.tokenStore]}.`);
  }
  return EXIT.ok;
};
