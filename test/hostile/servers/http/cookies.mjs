// Sets 300 cookies with each answer, among them some of 3 KB and some that no header can hold, and looks at what comes back.
import { seen, serveRaw, wellRaw } from "./lib.mjs";

let answers = 0;
const cookies = () => {
  answers++;
  const small = Array.from({ length: 300 }, (_, index) => `set-cookie: c${answers}-${index}=1`);
  const big = ["a", "b"].map((name) => `set-cookie: ${name}=${"x".repeat(3_000)}`);
  return [
    ...big,
    ...small,
    "set-cookie: tab=a\tb",
    "set-cookie: high=\u00e9",
    "set-cookie: last=1; Domain=.invalid",
  ];
};

serveRaw((message, socket, head) => {
  const [, sent = ""] = /^cookie: *(.*?)\r?$/im.exec(head) ?? [];
  if (sent.includes("last=1")) seen("cookies came back");
  if (sent.length > 4_200 || sent.split(";").length > 10) seen("too many");
  if (/[^\x20-\x7e]/.test(sent)) seen("unfit");
  socket.write(wellRaw(message, cookies()));
});
