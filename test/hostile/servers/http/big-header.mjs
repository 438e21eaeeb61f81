// Answers a method with a header of 1 MB: `big-header.mjs initialize 200`.
import { response, seen, serveRaw, wellRaw } from "./lib.mjs";

const [method, status] = process.argv.slice(2);
serveRaw((message, socket) => {
  if (message.method !== method) return socket.write(wellRaw(message));
  const name = status === "401" ? "www-authenticate: Bearer error=" : "x-much: ";
  socket.write(response(Number(status), [`${name}${"h".repeat(1_000_000)}`], "{}"), () => seen("sent"));
});
