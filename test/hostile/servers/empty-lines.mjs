// Answers correctly and writes empty lines without end, as fast as they are read.
import { serve } from "./lib.mjs";

const chunk = "\n".repeat(64 * 1024);
const flood = () => process.stdout.write(chunk, () => setImmediate(flood));
serve();
flood();
