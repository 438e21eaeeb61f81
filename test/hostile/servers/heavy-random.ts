// Answers the call `work` with a random answer: its arguments are `seed`, `number` and `mostBytes`.
// @ts-expect-error: plain JavaScript.
import { serve } from "./lib.mjs";
import { randomMessage } from "./random-message.ts";

serve({
  "tools/call": ({ id, params }: { id: number; params: { arguments: Record<string, number> } }) => {
    const { seed = 1, number = 0, mostBytes = 1_000 } = params.arguments;
    for (const line of randomMessage(seed, number, id, mostBytes).lines) process.stdout.write(`${line}\n`);
  },
});
