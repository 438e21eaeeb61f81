// Sends responses to requests that the client never made, as fast as they are read: `unasked-responses.mjs 60000`.
import { seen, serve } from "./lib.mjs";

const most = Number(process.argv[2]);
let count = 0;
const flood = () => {
  let chunk = "";
  for (let i = 0; i < 1_000; i++)
    chunk += `{"jsonrpc":"2.0","id":${1_000 + count++},"result":{"content":[]}}\n`;
  if (count < most) process.stdout.write(chunk, flood);
  else seen("sent");
};
serve();
flood();
