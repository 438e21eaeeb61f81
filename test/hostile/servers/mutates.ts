// A server over stdio whose answers have accidents. SEED and the call's number decide the accidents. SERVER is the
// server's position. STATE names a file that gets a byte for each launch, so each launch has other accidents.
import { appendFileSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
import { type Json, mutateAnswer, pickFrom, randomFor } from "./mutations.ts";
import { accidentOf, numberOf, soundResult } from "./sound-answers.ts";

const seed = Number(process.env.SEED);
const state = process.env.STATE ?? "";
const launch = statSync(state, { throwIfNoEntry: false })?.size ?? 0;
appendFileSync(state, ".");
const accident = accidentOf(seed, { server: Number(process.env.SERVER), connection: launch });

const answer = (message: Json): Json => ({
  jsonrpc: "2.0",
  id: message.id,
  result: soundResult(message.method, message.params),
});

let written = Promise.resolve();
/** Writes each piece in its own turn of the loop, so that the client reads the pieces one by one. */
function write(piece: Buffer): void {
  written = written.then(
    () =>
      new Promise((resolve) => {
        process.stdout.write(piece);
        setImmediate(resolve);
      }),
  );
}

function mutate(message: Json, number: number): void {
  const random = randomFor(seed, number);
  const pieces = mutateAnswer(answer(message), random);
  const lineEnd = pickFrom(random, ["\n", "\n", "\n", "\n", "\r\n", "\n\n\n", "\r", "\u2028", " \n"]);
  const bytes = Buffer.concat(pieces.flatMap((piece) => [piece, Buffer.from(lineEnd)]));
  const kind = random.below(30);
  if (kind === 0)
    process.stdout.write(bytes.subarray(0, random.below(bytes.length + 1)), () => process.exit(3));
  else if (kind === 1) process.stdout.end(bytes);
  else if (kind === 2) process.stderr.write(bytes, () => process.stdout.write(bytes));
  else {
    const at = random.below(bytes.length + 1);
    // An earlier answer may have left its line open. Most answers end that line first, so that they are not lost too.
    if (random.below(4) > 0) write(Buffer.from("\n"));
    write(bytes.subarray(0, at));
    write(bytes.subarray(at));
  }
}

process.stdout.on("error", () => process.exit(4));
createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line) as Json;
  if (message.id === undefined || message.method === undefined) return;
  if (message.method === "tools/call") mutate(message, numberOf(message.params));
  else if (message.method === accident?.method) mutate(message, accident.number);
  else process.stdout.write(`${JSON.stringify(answer(message))}\n`);
});
