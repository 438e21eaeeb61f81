// Writes to stderr without end, as fast as it is read.
import { serve } from "./lib.mjs";

const chunk = `${"every line is the same\n".repeat(3_000)}`;
const flood = () => process.stderr.write(chunk, flood);
serve();
flood();
