// Writes to stderr without end, with a pause in ms between the pieces: `floods-stderr.mjs 100`; 0 is as fast as it is read.
import { serve } from "./lib.mjs";

const chunk = `${"every line is the same\n".repeat(3_000)}`;
const pauseMs = Number(process.argv[2]);
const flood = () => process.stderr.write(chunk, pauseMs > 0 ? () => setTimeout(flood, pauseMs) : flood);
serve();
flood();
