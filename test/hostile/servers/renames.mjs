// Lists two tools whose names are the same in Pi, and two other such tools every 100 ms.
import { send, serve, tool } from "./lib.mjs";

let count = 0;
serve({ "tools/list": () => ({ tools: [tool(`read file ${count}`), tool(`read_file_${count}`)] }) });
setInterval(() => {
  count++;
  send({ method: "notifications/tools/list_changed" });
}, 100);
