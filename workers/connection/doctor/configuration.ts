/** What the files say: their mistakes, those that cannot be read, and servers of the project that may not run. */

import { isAbsolute } from "node:path";
import type { Finding } from "../../../src/shared/protocol/doctor.ts";
import type { ConfigProblem, StatusReport } from "../../../src/shared/protocol/status.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import { advice, commandFor } from "../../shared/commands.ts";
import type { ConfigState } from "../config/config.ts";
import { allWell, type DoctorInput } from "./check.ts";

const ofProblem = ({ severity, file, line, key, message, remedy }: ConfigProblem): Finding => ({
  id: "config",
  severity,
  title: `${key === undefined ? "" : `${key}: `}${message}.`,
  remedy,
  file,
  ...(line === undefined ? {} : { line }),
});

const ofQuestion = ({ server }: StatusReport["questions"][number]): Finding => ({
  id: "consent",
  severity: "warning",
  server,
  title: "A file of the project names the server, and it waits for your consent.",
  remedy: advice("consentShows"),
});

const ofRefusal = ({ name, reason }: StatusReport["refused"][number]): Finding => ({
  id: "consent",
  severity: "note",
  server: name,
  title: `The server of the project is not started: ${reason}.`,
  remedy: advice("refused"),
});

/** Whether anything is known of the file on the disk. */
export interface LookedFile {
  file: string;
  isThere: boolean;
}

/** `files`: in order of precedence. */
export function judgeConfiguration(
  { problems, questions, refused }: Omit<StatusReport, "servers" | "files">,
  files: readonly LookedFile[],
): Finding[] {
  const there = files.filter(({ isThere }) => isThere).map(({ file }) => file);
  const missing = files.filter(({ isThere }) => !isThere).map(({ file }) => file);
  const read: Finding =
    there.length === 0
      ? {
          id: "config",
          severity: "note",
          title: "No configuration file exists yet.",
          detail: `Looked for ${missing.join(", ")}.`,
          remedy: `${commandFor("add")}, or write the servers into the second of these files.`,
        }
      : {
          ...allWell("config", `${counted(there.length, "configuration file")} read.`),
          detail: `Read: ${there.join(", ")}.${missing.length > 0 ? ` Not there: ${missing.join(", ")}.` : ""}`,
        };
  return [...problems.map(ofProblem), ...questions.map(ofQuestion), ...refused.map(ofRefusal), read];
}

/** Whether a problem is about the server: its key is `mcpServers.<name>...`, or it concerns the whole file. */
function concerns({ key, severity }: ConfigProblem, server: string): boolean {
  if (key === undefined) return severity === "error";
  const below = /^mcp-?servers\.(.*)$/is.exec(key)?.[1];
  return below === server || below?.startsWith(`${server}.`) === true;
}

/** The state without what is about other servers. */
function about({ problems, questions, refused }: ConfigState, server: string): Omit<ConfigState, "files"> {
  return {
    problems: problems.filter((problem) => concerns(problem, server)),
    questions: questions.filter((question) => question.server === server),
    refused: refused.filter(({ name }) => name === server),
  };
}

/** Whether the files name a server of that name, although it may not run. */
export function isMentioned(state: ConfigState, server: string): boolean {
  const { problems, questions, refused } = about(state, server);
  return problems.length + questions.length + refused.length > 0;
}

export async function checkConfiguration({ state, named, machine }: DoctorInput): Promise<Finding[]> {
  const files = await Promise.all(
    state.files
      .filter((file) => isAbsolute(file))
      .map(async (file) => ({ file, isThere: (await machine.kindOf(file)) !== "missing" })),
  );
  return judgeConfiguration(named === undefined ? state : about(state, named), files);
}
