// Serves the skills of a JSON file: `skills.mjs /path`. Its keys:
// `pages`: the results of skills/list, one after the other; absent: never an answer; `endless`: empty pages without end.
// `told`: address -> the results of skills/get, of which each request takes the next; the last one stays; null: no answer.
// `files`: address -> the texts of resources/read in the same way; `{fill, bytes}` is a text of so many characters.
// `storm`: so many notifications that lists have changed, one each 20 ms, from the first list on.
import { readFileSync } from "node:fs";
import { hello, seen, send, serve } from "./lib.mjs";

const {
  pages,
  endless,
  told = {},
  files = {},
  storm = 0,
} = JSON.parse(readFileSync(process.argv[2], "utf8"));
const EXTENSION = "io.modelcontextprotocol/skills";

const taken = new Map();
const nextOf = (values, key) => {
  const at = taken.get(key) ?? 0;
  taken.set(key, at + 1);
  return values[Math.min(at, values.length - 1)];
};
const missing = (id) => void send({ id, error: { code: -32602, message: "none" } });

let left = storm;
const blow = () => {
  if (left-- <= 0) return seen("calm");
  for (const list of ["tools", "resources", "prompts", "skills"])
    send({ method: `notifications/${list}/list_changed` });
  setTimeout(blow, 20);
};
let isBlowing = false;

serve({
  initialize: (message) =>
    hello(message, {
      capabilities: {
        tools: { listChanged: true },
        resources: { listChanged: true },
        extensions: { [EXTENSION]: { directoryRead: true } },
      },
    }),
  "skills/list": ({ params }) => {
    if (storm > 0 && !isBlowing) {
      isBlowing = true;
      blow();
    }
    if (endless) return { skills: [], ttlMs: 0, nextCursor: `${Number(params?.cursor ?? 0) + 1}` };
    return pages?.[Number(params?.cursor ?? 0)];
  },
  "skills/get": ({ id, params: { uri } }) => {
    seen(`get ${uri}`);
    if (!told[uri]) return missing(id);
    return nextOf(told[uri], `get ${uri}`) ?? undefined;
  },
  "resources/read": ({ id, params: { uri } }) => {
    seen(`read ${uri}`);
    if (!files[uri]) return missing(id);
    const file = nextOf(files[uri], `read ${uri}`);
    const text = typeof file === "string" ? file : file.fill.repeat(file.bytes / file.fill.length);
    return { contents: [{ uri, text }] };
  },
});
