/** Attacks through the system's credential store: what its program prints, and what other programs have put into it. */
import { mkdir, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { placeOf } from "../../../workers/connection/auth/store/file.ts";
import { layStandIn, type Misdeed } from "../../support/secret-store.ts";
import { type Place, type Row, SERVER_CHECKS } from "../support/row.ts";
import { SECRET } from "./signing-in.ts";

/** Server -> what the program does for its item, and what the status then says. */
const SERVERS: Readonly<Record<string, readonly [misdeed: Misdeed, says: string]>> = {
  endless_output: ["floods", "its program printed more than 64 KiB"],
  another_program: ["other", "needs sign-in"],
  control_characters: ["odd", "needs sign-in"],
  locked: ["locked", "it is locked"],
  secret_on_stderr: ["dies", "secret-tool ended with code 3"],
  no_bus: ["nobus", "this session has no D-Bus"],
  // The session ends before the program does, and nothing of it is left.
  never_ends: ["asks", ""],
};

const itemOf = (nth: number): string => String(nth).repeat(32);
const storeIn = ({ home }: Place): string => join(home.dir, "store");

export const TOKEN_STORE: readonly Row[] = [
  {
    name: `sign-ins in a credential store whose program attacks: ${Object.keys(SERVERS).join(", ")}`,
    finding: "own",
    checks: [...SERVER_CHECKS, "leaves"],
    alone: "home",
    settings: { tokenStore: "system" },
    env: (place) => ({ PATH: `${storeIn(place)}${delimiter}${process.env.PATH}` }),
    servers: async (place) => {
      const names = Object.keys(SERVERS);
      const misdeeds = names.map((name, nth) => [itemOf(nth), SERVERS[name]?.[0] ?? "locked"] as const);
      await layStandIn(storeIn(place), Object.fromEntries(misdeeds));
      const entries: Record<string, { url: string; lifecycle: string }> = {};
      for (const [nth, server] of names.entries()) {
        const { url } = await place.sharedHttp("sign-in.mjs", "none", SECRET);
        entries[server] = { url, lifecycle: "eager" };
        const { file } = placeOf({ agentDir: place.home.agentDir, server, url });
        await mkdir(dirname(file), { recursive: true, mode: 0o700 });
        const pointer = { version: 3, server, url, store: "system", item: itemOf(nth), parts: 1 };
        await writeFile(file, JSON.stringify(pointer), { mode: 0o600 });
        // An item that is there: a locked one is no missing one.
        await writeFile(join(storeIn(place), "items", itemOf(nth)), "bm90aGluZw");
      }
      return entries;
    },
    check: async (arena) => {
      const wrong = async (): Promise<string[]> => {
        const lines = (await arena.status()).split("\n");
        return Object.entries(SERVERS).flatMap(([name, [, says]]) => {
          const at = lines.findIndex((line) => line.startsWith(`${name}: `));
          const about = lines.slice(at, at + 3).join(" ");
          return at >= 0 && about.includes(says) ? [] : [`${name}: ${about}`];
        });
      };
      await arena.until(async () => (await wrong()).length === 0);
      const shown = JSON.stringify([arena.notices, arena.dialogs, arena.requests, await arena.status()]);
      return [
        ...(await wrong()),
        ...(shown.includes("a part of the secret") ? ["Pi shows what the program printed"] : []),
      ];
    },
  },
];
