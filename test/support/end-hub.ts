/** Owns: the end of a hub that sessions of a test have started. */
import { answerHub } from "../../workers/connection/hub/ask.ts";
import { placeOf } from "../../workers/connection/hub/link.ts";
import { waitGone } from "./processes.ts";
import { removeFolder } from "./temp-folder.ts";

/** Ends the hub of an agent folder with its servers, and removes its folder. */
export async function endHub(agentDir: string): Promise<void> {
  const { report } = await answerHub(agentDir, { stop: {} });
  if (report) await waitGone([report.pid]);
  await removeFolder(placeOf(agentDir).folder);
}
