// Sends notifications over the stream as fast as they are read; the first event has an id of 1 MB.
import { events, seen, serve } from "./lib.mjs";

const event = 'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'.repeat(
  500,
); /** Pieces after which the client has read thousands of notifications. */
const FLOOD = 40;

serve({
  GET: (_message, _request, response) => {
    seen("stream");
    events(response).write(`id: ${"i".repeat(1_000_000)}\n${event}`);
    let written = 0;
    const flood = () => {
      if (++written === FLOOD) seen("flooded");
      if (!response.destroyed) response.write(event, () => setImmediate(flood));
    };
    flood();
  },
});
