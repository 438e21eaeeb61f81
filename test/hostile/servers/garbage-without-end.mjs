// Answers initialize, then writes garbage in a line that never ends.
import { serve } from "./lib.mjs";

const chunk = Buffer.alloc(64 * 1024, "x");
const flood = () => process.stdout.write(chunk, flood);
serve({ "tools/list": () => void flood() });
