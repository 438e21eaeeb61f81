// Sends 60,000 responses to requests that the client never made, as fast as they are read.
import { seen, serve } from "./lib.mjs";

let count = 0;
const flood = () => {
  let chunk = "";
  for (let i = 0; i < 1_000; i++)
    chunk += `{"jsonrpc":"2.0","id":${1_000 + count++},"result":{"content":[]}}\n`;
  if (count < 60_000) process.stdout.write(chunk, flood);
  else seen("sent");
};
serve();
flood();
