// Answers a method with a list of the given size in MiB that repeats one value, gzipped to some 60 KB:
// `floods-gzip.mjs tools/list 60 '{}'`.
import { gzipSync } from "node:zlib";
import { json, seen, serve } from "./lib.mjs";

const [method, mebibytes, value] = process.argv.slice(2);
const list = `${value},`.repeat((Number(mebibytes) * 2 ** 20) / (value.length + 1));
const key = method === "tools/list" ? "tools" : "content";
serve({
  [method]: ({ id }, _request, response) => {
    const body = gzipSync(
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"${key}":[${list}${value}]}}`,
    );
    response.on("finish", () => seen("sent"));
    json(response, body, { "content-encoding": "gzip" });
  },
});
