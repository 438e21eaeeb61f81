/** Owns: the list of all rows, and the test file in which each row runs. A bench takes rows by their names. */
import { family } from "../../support/long.ts";
import { type Row, SERVER_CHECKS } from "../support/row.ts";
import { APPROVAL } from "./approval.ts";
import { ASSERTIONS } from "./assertions.ts";
import { CATALOGS } from "./catalogs.ts";
import { DOCTOR_ROWS } from "./doctor.ts";
import { ELICITATION } from "./elicitation.ts";
import { FILES } from "./files.ts";
import { FLOODS } from "./floods.ts";
import { HTTP } from "./http.ts";
import { MANNERS } from "./manners.ts";
import { MODERN } from "./modern.ts";
import { NAMES } from "./names.ts";
import { EACH_TRAP, STARTS } from "./npx.ts";
import { PACKAGE_ROWS } from "./packages.ts";
import { POWERS } from "./powers.ts";
import { PROMPT_ROWS } from "./prompts.ts";
import { QUESTIONS } from "./questions.ts";
import { RESOURCE_ROWS } from "./resources.ts";
import { SCHEMAS } from "./schemas.ts";
import { SETUP_ROWS } from "./setup.ts";
import { SHAPES } from "./shapes.ts";
import { SIGN_IN } from "./sign-in.ts";
import { SIGNS } from "./signs.ts";
import { SKILL_ROWS } from "./skills.ts";
import { STORIES } from "./stories.ts";
import { TEXTS } from "./texts.ts";
import { TOKEN_STORE } from "./token-store.ts";

/** Rows without an attack, one in each kind of session. If they fail, no other row proves anything. */
const CONTROLS: readonly Row[] = [
  { where: "in the session that rows share" },
  ...family<{ where: string; alone: "home" | "process" }>([
    { where: "in a session of its own", alone: "home" },
    { where: "in a Pi of its own", alone: "process" },
  ]),
].map(({ where, ...alone }) => ({
  name: `no attack, ${where}`,
  finding: "own",
  ...alone,
  checks: SERVER_CHECKS,
  server: ({ hostile }) => hostile("healthy.mjs"),
  calls: [{ tool: "echo", args: { text: "x" } }],
}));

/**
 * test/oauth/README.md names the test of each rule of a sign-in; in the real Pi, `npm test` tries those of which the user reads
 * something, or on which the most depends.
 */
const SIGN_INS_IN_PI: readonly string[] = [
  ...["attack: none", "dpop: none", "assertion: no attack"],
  ...["endpoint: of another server", "endpoint is another server's", "endpoint: escape sequences"],
  ...["answer: another issuer", "answer: another state", "metadata: the issuer of another server"],
  ...["resource: of another origin", "device: the page of another server", "dpop: a bearer token"],
  ...[
    "token: endless",
    "token: an error that repeats the code",
    "a key: its words",
    "its program never ends",
  ],
  ...["calls: 401 for ever", "calls: 401 without a sign-in", "two sign-ins at once", "foreign requests"],
];

/** Throws if a phrase fits no row: the row that it meant would run for `ALL_ROWS=1` only. */
function signIns(rows: readonly Row[]): Row[] {
  const stray = SIGN_INS_IN_PI.find((phrase) => !rows.some(({ name }) => name.includes(phrase)));
  if (stray !== undefined) throw new Error(`no row about a sign-in is called "${stray}"`);
  return rows.map((row) =>
    SIGN_INS_IN_PI.some((phrase) => row.name.includes(phrase)) ? row : { ...row, thorough: true },
  );
}

export const GROUPS = {
  floods: [...CONTROLS, ...FLOODS],
  messages: [...SHAPES, ...TEXTS, ...MANNERS, ...MODERN],
  names: [...NAMES, ...APPROVAL, ...PROMPT_ROWS, ...RESOURCE_ROWS, ...SCHEMAS],
  catalogs: [...CATALOGS, ...SIGNS],
  http: HTTP,
  skills: SKILL_ROWS,
  user: [
    ...signIns([...SIGN_IN, ...ASSERTIONS]),
    ...TOKEN_STORE,
    ...ELICITATION,
    ...DOCTOR_ROWS,
    ...SETUP_ROWS,
  ],
  clone: [...STARTS, ...QUESTIONS, ...FILES, ...POWERS, ...PACKAGE_ROWS, ...STORIES],
} as const satisfies Record<string, readonly Row[]>;

export const ROWS: readonly Row[] = [...new Set([...Object.values(GROUPS).flat(), ...EACH_TRAP])];
