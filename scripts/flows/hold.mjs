// An extension that is loaded last: while a file `hold` lies in $FLOWS, each call of a tool waits before it is executed.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const file = (name) => join(process.env.FLOWS, name);

export default (pi) =>
  pi.on("tool_call", async () => {
    if (!existsSync(file("hold"))) return;
    writeFileSync(file("held"), "");
    while (existsSync(file("hold"))) await sleep(20);
  });
