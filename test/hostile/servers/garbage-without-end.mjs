// Answers initialize, then writes what is no message and never ends the line.
import { serve } from "./lib.mjs";

const chunk = Buffer.alloc(64 * 1024, "x");
const flood = () => process.stdout.write(chunk, flood);
serve({ "tools/list": () => void flood() });
