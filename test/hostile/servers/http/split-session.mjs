// Sends a session id with CR LF and another header behind it, then a session id with a tab, and a cookie.
import { seen, serveRaw, wellRaw } from "./lib.mjs";

serveRaw((message, socket, head) => {
  if (/^(x-evil|cookie):/im.test(head)) seen("took the header");
  const ids = ["mcp-session-id: abc\r\nx-evil: 1", "mcp-session-id: a\tb", "set-cookie: a=b"];
  socket.write(wellRaw(message, message.method === "initialize" ? ids : []));
});
