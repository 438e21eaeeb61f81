/** Attacks by files of a clone on the user's own servers, which start in that clone. */
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { PACKAGE } from "../support/registry.ts";
import { CLONE_CHECKS, type Place, type Row } from "../support/row.ts";
import { executable, link, required, script } from "./laying.ts";

export const NPM_MS = 30_000;

interface Trap {
  /** What the clone has. */
  name: string;
  lay(place: Place): Promise<void>;
}

/**
 * Returns a row that attacks the user's own npx server: the server must work, and nothing of the clone may run.
 * `what`: what the clone has.
 */
const npxRow = (what: string, traps: readonly Trap[], trusted?: boolean): Row => ({
  name: `a clone with ${what}: the user's own npx server runs nothing of the clone`,
  finding: "C1",
  alone: "home",
  ...(trusted === undefined ? {} : { trusted }),
  checks: CLONE_CHECKS,
  servers: async (place) => ({ mine: await place.npx() }),
  lay: async (place) => {
    for (const { lay } of traps) await lay(place);
  },
  act: async (arena) => {
    // npm may take longer than a search waits.
    let text = "";
    const works = await arena.until(async () => {
      text = (await arena.use("mine", "echo", { text: "mine" })).text;
      return text === "echo: mine";
    }, NPM_MS);
    if (!works) throw new Error(`the user's own server does not work: ${text.slice(0, 300)}`);
  },
});

export const commitsPackage = async (place: Place): Promise<void> => {
  const { home } = place;
  const folder = `node_modules/${PACKAGE}`;
  const manifest = { name: PACKAGE, version: "1.0.0", bin: { [PACKAGE]: "evil.cjs" } };
  await home.writeFile(`${folder}/package.json`, manifest);
  await executable(place, `${folder}/evil.cjs`, `#!/usr/bin/env node\n${required(place)}`);
  await link(`../${PACKAGE}/evil.cjs`, place, `node_modules/.bin/${PACKAGE}`);
};

/** Adds a line to the clone's settings of npm. */
const setting = (place: Place, line: string): Promise<void> =>
  appendFile(join(place.home.cwd, ".npmrc"), `${line}\n`);

const BIN_NODE: Trap = {
  name: "node_modules/.bin/node",
  lay: (place) =>
    executable(place, "node_modules/.bin/node", script(place, `exec "${process.execPath}" "$@"`)),
};

/** They lie beside each other in one clone; `npm run test:long` lays each one alone. */
const TRAPS: readonly Trap[] = [
  BIN_NODE,
  {
    name: ".npmrc with script-shell",
    lay: async (place) => {
      await setting(place, "script-shell=./sh.sh");
      await executable(place, "sh.sh", script(place, 'exec /bin/sh "$@"'));
    },
  },
  {
    name: ".npmrc with node-options",
    lay: async (place) => {
      await setting(place, "node-options=--require=./options.cjs");
      await place.home.writeFile("options.cjs", required(place));
    },
  },
  {
    name: ".npmrc with another registry and another cache",
    lay: (place) => setting(place, `registry=${place.canary.origin}/\ncache=./cache\nprefix=./prefix`),
  },
  { name: "a committed node_modules with a package of the same name", lay: commitsPackage },
  {
    name: "a package.json with the same name and another bin",
    lay: async (place) => {
      const manifest = { name: PACKAGE, version: "9.0.0", bin: { [PACKAGE]: "./evil.cjs" } };
      await place.home.writeFile("package.json", manifest);
      await executable(place, "evil.cjs", `#!/usr/bin/env node\n${required(place)}`);
    },
  },
];

/** Each trap in a clone of its own. */
export const EACH_TRAP: readonly Row[] = TRAPS.map((trap) =>
  npxRow(trap === BIN_NODE ? `${trap.name} and no trust` : trap.name, [trap], false),
);

/** Every row installs a package with npm and starts it, which takes two seconds of processor time. */
const isEachAlone = process.env.NPX_TRAPS_ALONE === "1";

export const STARTS: readonly Row[] = [
  // No code that starts npx looks at the trust. With it, Pi reads more of the clone.
  npxRow("every trap for npm and no question about trust", TRAPS),
  ...(isEachAlone
    ? [
        ...EACH_TRAP,
        npxRow("every trap for npm and no trust", TRAPS, false),
        npxRow("node_modules/.bin/node and no question about trust", [BIN_NODE]),
      ]
    : []),
];
