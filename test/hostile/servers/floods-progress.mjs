// Reports steps of progress in a call, each with a message, and then answers the call: `floods-progress.mjs 30000`.
import { seen, send, serve, text } from "./lib.mjs";

const STEPS = Number(process.argv[2]);
serve({
  "tools/call": ({ id, params }) => {
    const token = JSON.stringify(params._meta?.progressToken ?? "none");
    let step = 0;
    const flood = () => {
      let chunk = "";
      for (let i = 0; i < 1_000; i++)
        chunk += `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${step++},"message":"step"}}\n`;
      if (step < STEPS) process.stdout.write(chunk, flood);
      else send({ id, result: text("arrived") }, () => seen("sent"));
    };
    flood();
  },
});
