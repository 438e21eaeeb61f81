/**
 * Owns: the move of a running Pi into another home. Between the end of a session and the start of the next one, Pi's
 * process gets the folder and the environment that the file in STAGE names: `{"cwd": "...", "env": {"HOME": "..."}}`;
 * null removes a variable. The next session then starts as the first session of a Pi that was started there.
 * Then a notice says that the session has ended.
 * Must not: touch a session.
 * Called by: Pi, as the last of all extensions, so that the other extensions have ended their session by then.
 */
import { existsSync, readFileSync } from "node:fs";

const { STAGE } = process.env;

export default function stage(pi) {
  pi.on("session_shutdown", (_event, ctx) => {
    if (!existsSync(STAGE)) return;
    const { cwd, env } = JSON.parse(readFileSync(STAGE, "utf8"));
    process.chdir(cwd);
    for (const [name, value] of Object.entries(env)) {
      if (value === null) delete process.env[name];
      else process.env[name] = value;
    }
    ctx.ui.notify("the session has ended", "info");
  });
}
