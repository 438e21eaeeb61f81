// Sends a session id with CR LF and another header behind it, then a session id with a tab, and a cookie with CR LF.
import { seen, serveRaw, wellRaw } from "./lib.mjs";

serveRaw((message, socket, head) => {
  if (/^x-evil:/im.test(head)) seen("took the header");
  const ids = ["mcp-session-id: abc\r\nx-evil: 1", "mcp-session-id: a\tb", "set-cookie: a=b\r\nx-evil: 1"];
  socket.write(wellRaw(message, message.method === "initialize" ? ids : []));
});
