// Answers a method with a false content-length: `false-length.mjs tools/list more|less|negative|two|huge`.
import { replyOf, seen, serveRaw, wellRaw } from "./lib.mjs";

const [method, kind] = process.argv.slice(2);
serveRaw((message, socket) => {
  if (message.method !== method) return socket.write(wellRaw(message));
  const body = replyOf(message);
  const lengths = {
    more: [body.length + 1_000],
    less: [body.length - 5],
    negative: [-1],
    two: [body.length, body.length + 7],
    huge: ["99999999999999999999"],
  }[kind];
  const heads = lengths.map((length) => `content-length: ${length}`);
  const head = ["HTTP/1.1 200 OK", "content-type: application/json", ...heads].join("\r\n");
  socket.write(`${head}\r\n\r\n${body}`, () => seen("sent"));
});
