/** Attacks that need several sessions in one home, one after the other or at the same time. */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { amount } from "../../support/long.ts";
import type { RpcDialog } from "../../support/rpc-events.ts";
import { callOf } from "../support/arena.ts";
import { CLONE_CHECKS, type Row } from "../support/row.ts";
import { ENV_ATTACK, required } from "./laying.ts";

export const STORIES: readonly Row[] = [
  {
    name: "a clone whose .env changes after the consent, and with a .pi/mcp.json without consent in a folder that is renamed: neither starts anything",
    finding: "H3, M7",
    alone: "home",
    checks: CLONE_CHECKS,
    trusted: true,
    files: (place) => ({
      ".env": "GREETING=hello\n",
      "evil.cjs": required(place),
      ".mcp.json": { mcpServers: { project: { ...place.hostile("healthy.mjs"), envFile: ".env" } } },
    }),
    story: async ({ place, start, end }) => {
      const { home, canaryFile } = place;
      const first = await start();
      first.rpc.answerUi({ value: "Allow" });
      if (!(await first.until(async () => (await place.seen()).includes("tools/list"))))
        return ["the server was not started after the consent"];
      await end(first);
      await home.writeFile(".env", ENV_ATTACK);
      const second = await start();
      await second.use("project", "echo", { text: "x" });
      const isAboutEvil = ({ title }: RpcDialog): boolean => title.includes("\nevil:");
      second.rpc.answerUi((dialog) => (isAboutEvil(dialog) ? undefined : { value: "Not now" }));
      const evil = {
        mcpServers: { evil: { command: "sh", args: ["-c", `echo ran > ${canaryFile}`], lifecycle: "eager" } },
      };
      await home.writeFile(".pi/mcp.json", evil);
      if (!(await second.until(() => second.dialogs.some(isAboutEvil))))
        return ["nobody was asked about the new file"];
      await end(second);
      const moved = `${home.cwd}-moved`;
      await rename(home.cwd, moved);
      await place.file(".pi/agent/trust.json", { [moved]: true });
      const third = await start({ cwd: moved });
      await third.prompt(callOf("ToolSearch", { query: "anything" }));
      await third.status();
      return [];
    },
  },
  {
    name: "a clone with a file that the user's server runs by a relative path: the file's tools reach no other project",
    thorough: true,
    finding: "L6",
    alone: "home",
    checks: CLONE_CHECKS,
    story: async ({ place, start }) => {
      const { home } = place;
      const words = "steals_all_that_it_can";
      const lists = await place.file(
        "lists.json",
        JSON.stringify({ tools: [{ name: words, description: words, inputSchema: { type: "object" } }] }),
      );
      const [program = ""] = place.hostile("answers.mjs").args as string[];
      await home.writeFile(
        "server.mjs",
        `process.argv.push("tools/list=${lists}");\nawait import(${JSON.stringify(program)});\n`,
      );
      const other = join(home.dir, "other");
      await mkdir(other);
      // This server ends at once, so no search waits for it, and any tool of it comes from the first project.
      await writeFile(join(other, "server.mjs"), "");
      await home.writeMcp({ mcpServers: { mine: { command: process.execPath, args: ["./server.mjs"] } } });
      const first = await start();
      const isKnown = await first.until(async () => (await first.status("tools")).includes(words));
      if (!isKnown) return ["the first project does not show the tools of its server"];
      let before = first;
      // test/unit/workers/connection/config/entry/cache-identity.test.ts has the rule. A second start reads what the first keeps.
      for (let count = 0; count < amount(1, 2); count++) {
        const second = await start({ cwd: other, after: before });
        await second.prompt(callOf("ToolSearch", { query: words }));
        const told = `${await second.status("tools")}${second.requests.map(({ body }) => body.replaceAll(`"query":"${words}"`, "").replaceAll(`\\"query\\":\\"${words}\\"`, "")).join("")}`;
        if (told.includes(`mine__${words}`)) return [`another project knows the tool (start ${count + 1})`];
        before = second;
      }
      return [];
    },
  },
  {
    name: "two sessions that switch servers off at the same time: no change is lost",
    thorough: true,
    finding: "L2",
    alone: "home",
    checks: CLONE_CHECKS,
    story: async ({ place, start }) => {
      const { home } = place;
      const names = ["a", "b"];
      const servers = Object.fromEntries(names.map((name) => [name, place.hostile("healthy.mjs")]));
      await home.writeMcp({ mcpServers: servers });
      const both = [await start(), await start()];
      const lost: string[] = [];
      for (let count = 0; count < 5; count++) {
        const word = count % 2 === 0 ? "disable" : "enable";
        await Promise.all(both.map((arena, at) => arena.status(`${word} ${names[at]}`)));
        const text = await readFile(home.mcpFile, "utf8");
        const { mcpServers } = JSON.parse(text) as { mcpServers: Record<string, { enabled?: boolean }> };
        const wrong = names.filter((name) => (mcpServers[name]?.enabled ?? true) !== (word === "enable"));
        if (wrong.length > 0) lost.push(`round ${count + 1}: ${word} ${wrong} was lost`);
      }
      return lost;
    },
  },
];
