// Ends every connection in the middle of the head of its answer.
import { serveRaw } from "./lib.mjs";

serveRaw((_message, socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-ty"));
