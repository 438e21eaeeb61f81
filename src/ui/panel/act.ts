/** Carries out what a key asked for, through the session. */
import type { PiContext } from "../../pi/api.ts";
import { counted } from "../../shared/text/counts.ts";
import { editConfig } from "../edit-config.ts";
import { askedKey, runSetup } from "../setup/setup.ts";
import type { PanelHost } from "./host.ts";
import { type Effect, EXPOSURE_WORDS } from "./model/model.ts";

export type Act = Exclude<Effect, { type: "close" }>;

/** What the panel says while the action is under way; undefined for an action with a dialog of its own. */
export function busyText(effect: Act): string | undefined {
  switch (effect.type) {
    case "reconnect":
      return `Connecting ${effect.server}`;
    case "enable":
      return `${effect.enabled ? "Enabling" : "Disabling"} ${effect.server}`;
    case "sign-out":
      return `Signing out of ${effect.server}`;
    default:
      return undefined;
  }
}

const isConnected = (server: string, host: PanelHost): boolean =>
  host.servers().some(({ name, state }) => name === server && state === "connected");

/** Answers one sentence for the person, or nothing if the screen shows the effect. Rejects with what went wrong. */
export async function act(effect: Act, ctx: PiContext, host: PanelHost): Promise<string | undefined> {
  switch (effect.type) {
    case "reconnect":
      await host.ask("reconnect", { server: effect.server });
      // A failure stands in the server's state, which the panel shows.
      return isConnected(effect.server, host) ? `${effect.server} is connected.` : undefined;
    case "enable": {
      const { server, enabled, project } = effect;
      const { file, but } = await host.ask("setEnabled", { server, enabled, project });
      return [`${server} is ${enabled ? "enabled" : "disabled"} in ${file}.`, ...(but ? [but] : [])].join(
        " ",
      );
    }
    case "sign-in":
      await askedKey(await host.signIn(effect.server), ctx, host);
      return undefined;
    case "sign-out":
      return (await host.ask("signOut", { server: effect.server })).text;
    case "set": {
      const { server, change } = effect;
      const { file } = await host.ask("setServer", { server, project: false, ...change });
      return `${change.key} of ${server} is ${change.value} in ${file}.`;
    }
    case "expose": {
      const { server, tools, to } = effect;
      const { file } = await host.ask("setExposure", {
        server,
        tools: tools && [...tools],
        to,
        project: false,
      });
      const what = tools?.length === 1 ? tools[0] : tools ? counted(tools.length, "tool") : "every tool";
      return `${what} of ${server}: ${EXPOSURE_WORDS[to]}, in ${file}.`;
    }
    case "set-up":
      await runSetup(effect.word, "", ctx, host);
      return undefined;
    case "remove":
      await runSetup("remove", effect.server, ctx, host);
      return undefined;
    case "trust":
      await host.askConsents();
      return undefined;
    case "edit":
      return editConfig(effect.project, ctx, host.ask);
  }
}
