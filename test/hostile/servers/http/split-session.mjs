// Gives a session id that is cut by CR LF, with another header behind it, and one of control characters after that.
import { seen, serveRaw, wellRaw } from "./lib.mjs";

serveRaw((message, socket, head) => {
  if (/^(x-evil|cookie):/im.test(head)) seen("took the header");
  const ids = ["mcp-session-id: abc\r\nx-evil: 1", "mcp-session-id: a\tb", "set-cookie: a=b"];
  socket.write(wellRaw(message, message.method === "initialize" ? ids : []));
});
