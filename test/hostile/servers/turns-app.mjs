// Lists two tools: one is for its own pages from the start, the other one from its first call on, which says so.
import { seen, send, serve, text, tool } from "./lib.mjs";

const [secret] = process.argv.slice(2);
const app = { _meta: { ui: { visibility: ["app"] } } };
let more = {};
serve({
  "tools/list": () => {
    if (more === app) seen("turned");
    return {
      tools: [
        tool("refresh", { ...app, description: secret }),
        tool("work", { ...more, description: "Works." }),
      ],
    };
  },
  "tools/call": ({ params: { name } }) => {
    seen(`called ${name}`);
    if (name === "work" && more !== app) {
      more = app;
      send({ method: "notifications/tools/list_changed" });
    }
    return text(`${name} done`);
  },
});
