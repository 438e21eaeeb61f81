// Answers methods with the JSON text of files: `answers.mjs tools/list=/path initialize=/path`. A text that begins with
// `error ` becomes an error.
import { readFileSync } from "node:fs";
import { seen, serve } from "./lib.mjs";

const answer = ({ id, method }, body) => {
  const outcome = body.startsWith("error ") ? `"error":${body.slice(6)}` : `"result":${body}`;
  process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${outcome}}\n`, () =>
    seen(`sent ${method}`),
  );
};
const own = process.argv.slice(2).map((argument) => {
  const [method, file] = argument.split("=");
  const body = readFileSync(file, "utf8");
  return [method, (message) => answer(message, body)];
});
serve(Object.fromEntries(own));
