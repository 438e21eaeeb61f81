// Answers correctly and writes empty lines without end, with a pause in ms between the pieces: `empty-lines.mjs 100`.
import { serve } from "./lib.mjs";

const chunk = "\n".repeat(64 * 1024);
const pauseMs = Number(process.argv[2]);
const flood = () => process.stdout.write(chunk, () => setTimeout(flood, pauseMs));
serve();
flood();
