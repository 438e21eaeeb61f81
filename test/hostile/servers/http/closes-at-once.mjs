// Closes every connection in the middle of the answer's head.
import { serveRaw } from "./lib.mjs";

serveRaw((_message, socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-ty"));
