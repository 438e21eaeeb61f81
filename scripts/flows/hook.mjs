// Loaded by each thread of Pi: writes and resets the thread's coverage when the next file `take-<n>` lies in $FLOWS.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { takeCoverage } from "node:v8";

let next = 1;
while (existsSync(join(process.env.FLOWS, `take-${next}`))) next++;
setInterval(() => {
  if (!existsSync(join(process.env.FLOWS, `take-${next}`))) return;
  next++;
  takeCoverage();
}, 50).unref();
