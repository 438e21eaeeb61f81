// Listens at a socket beside the record, and tells its number in place of a port. <endless|gone>: in tools/list begins a line
// that never ends, or closes the connection in each call.
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { resultOf, seen } from "./lib.mjs";

const [kind] = process.argv.slice(2);
const chunk = "x".repeat(65_536);

function flood(socket) {
  seen("floods");
  const more = () => {
    while (socket.writable && socket.write(chunk));
  };
  socket.on("drain", more);
  more();
}

createServer((socket) => {
  let rest = "";
  socket.on("error", () => undefined);
  socket.on("data", (bytes) => {
    const lines = (rest + bytes).split("\n");
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) {
      seen(message.method ?? "response");
      if (kind === "endless" && message.method === "tools/list") flood(socket);
      else if (kind === "gone" && message.method === "tools/call") socket.destroy();
      else if (message.id !== undefined)
        socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, result: resultOf(message) })}\n`);
    }
  });
}).listen(join(dirname(process.env.SEEN), `socket-${process.pid}`), () =>
  process.stdout.write(`${process.pid}\n`),
);
