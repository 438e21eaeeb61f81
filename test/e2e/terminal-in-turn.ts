/**
 * Owns: one Pi in a real terminal for several tests. Each test gets a new session from a home of its own content in the
 * same place, and a screen of its own size.
 * Must not: know what is on the screen, but for the panel that a test may leave open.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFailed } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import type { ModelTurn } from "../support/model.ts";
import { fillHome, type HomeOptions, type PiHome } from "../support/pi-home.ts";
import { EDITOR, openTerminal, type Terminal } from "../support/terminal.ts";
import { NEXT_HOME } from "./in-turn.ts";
import { ENTRY, home, model, onCleanup } from "./support.ts";

export interface Screen {
  at: PiHome;
  terminal: Terminal;
}

interface Size {
  columns: number;
  rows: number;
}

type Script = (at: PiHome) => readonly ModelTurn[];
type TakeScreen = (turn: HomeOptions, size: Size, script?: Script) => Promise<Screen>;

/** Tells the sessions apart: the chat of each one begins with its number. */
const NUMBERS = `
export default (pi) => pi.on("session_start", (event, ctx) => {
  globalThis.sessionsOfTest = (globalThis.sessionsOfTest ?? 0) + 1;
  ctx.ui.notify("session " + globalThis.sessionsOfTest + " of this test file", "warning");
});`;

/** Returns a function that begins a session. After a test that failed, the next one gets another Pi. */
export function terminalInTurn(env: Readonly<Record<string, string>> = {}): TakeScreen {
  let shared: Screen | undefined;
  let sessions = 0;
  const turns: ModelTurn[] = [];

  const start = async (turn: HomeOptions, size: Size): Promise<Screen> => {
    const at = await home(turn);
    const numbers = join(at.tmpDir, "numbers.mjs");
    await writeFile(numbers, NUMBERS);
    const extensions = [ENTRY, numbers, NEXT_HOME];
    const scripted = await model(() => turns.shift());
    const terminal = await openTerminal({ home: at, model: scripted, extension: extensions, env, ...size });
    onCleanup(() => terminal.close());
    return { at, terminal };
  };
  const next = async ({ at, terminal }: Screen, turn: HomeOptions, size: Size): Promise<void> => {
    await leavePanel(terminal);
    await fillHome(join(at.dir, "next"), turn, at.cwd);
    await terminal.resize(size.columns, size.rows);
    // The test may have left a text.
    await terminal.press("C-u");
    await terminal.prompt("/new");
    // The first Enter may only accept the completion; a second Enter on an empty line does nothing.
    await terminal.press("Enter");
  };

  return async (turn, size, script) => {
    onTestFailed(() => {
      shared = undefined;
    });
    turns.length = 0;
    sessions++;
    if (shared) {
      await next(shared, turn, size);
    } else {
      shared = await forWholeFile(() => start(turn, size));
      sessions = 1;
    }
    await shared.terminal.until(new RegExp(`session ${sessions} of this test file`));
    turns.push(...(script?.(shared.at) ?? []));
    return shared;
  };
}

const LEAVE_TRIES = 20;
/** A key that comes while a page opens may be lost: then it is pressed again. */
const LOST_KEY_MS = 8_000;
/** Each page of the panel, and each dialog, says what Escape does. */
const COVERED = / {2}esc (close|back|clear)|^ esc back|escape\/ctrl\+c cancel/m;
/** The page and what Escape does there: its numbers change by themselves, while Escape is still on its way. */
function pageOf(screen: string): string {
  const title = screen.matchAll(/^─{10,}\n\n? (\S.*?)(?: {2}|$)/gm);
  return `${[...title].at(-1)?.[1]} ${COVERED.exec(screen)?.[0]}`;
}

/** An Escape that is still on its way makes another key of the letter behind it: such a letter is typed here, and removed. */
async function typesAgain(terminal: Terminal): Promise<void> {
  await terminal.press("C-u");
  await terminal.type("xx");
  await terminal.until(/^─{10,}\n ?x{1,2}\n─{10,}\n~/m);
  await terminal.press("C-u");
  await terminal.until(/^─{10,}\n\n─{10,}\n~/m);
}

/** Goes back until Pi's editor is on the screen. A second Escape that comes late would make another key of the one behind it. */
export async function leavePanel(terminal: Terminal): Promise<void> {
  for (let tries = 0; tries < LEAVE_TRIES; tries++) {
    const before = (await terminal.until(new RegExp(`${COVERED.source}|${EDITOR.source}`, "m"))).join("\n");
    if (!COVERED.test(before)) return typesAgain(terminal);
    await terminal.press("Escape");
    let after = before;
    const endsAt = performance.now() + LOST_KEY_MS;
    while (pageOf(after) === pageOf(before) && performance.now() < endsAt) {
      await sleep(20);
      after = (await terminal.screen()).join("\n");
    }
  }
  throw new Error(`the panel stays open:\n${(await terminal.screen()).join("\n")}`);
}
