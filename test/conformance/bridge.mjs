// A server over stdio that is the suite's server over HTTP (its address is the argument): each message of the client is a
// request there, and what comes back, as JSON or as events, is a line.
import { createInterface } from "node:readline";

const [url] = process.argv.slice(2);
const print = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** Settles when the server's questions can come: before that, it would lose one. */
let listening = Promise.resolve();

async function forward(line) {
  const { id, method, params } = JSON.parse(line);
  const version = params?._meta?.["io.modelcontextprotocol/protocolVersion"];
  if (version) headers["mcp-protocol-version"] = version;
  const names = {
    ...(method ? { "mcp-method": method } : {}),
    ...(params?.name ? { "mcp-name": params.name } : {}),
  };
  const sent = version ? { ...headers, ...names } : headers;
  const response = await fetch(url, { method: "POST", headers: sent, body: line });
  const session = response.headers.get("mcp-session-id");
  if (session) headers["mcp-session-id"] = session;
  const text = await printed(response);
  if (text !== "") print(JSON.parse(text));
  else if (!response.ok && id !== undefined)
    print({ jsonrpc: "2.0", id, error: { code: -32_603, message: `status ${response.status}` } });
}

/** Questions that belong to no request come over a stream of their own. */
async function listen() {
  if (!headers["mcp-session-id"]) return;
  const stream = await fetch(url, { headers: { ...headers, accept: "text/event-stream" } });
  printed(stream).catch(report);
}

const report = (error) => process.stderr.write(`${error}\n`);

/** Prints the messages of a stream of events. Answers the text of any other body. */
async function printed(response) {
  const isEvents = response.headers.get("content-type")?.includes("text/event-stream");
  if (!isEvents) return (await response.text()).trim();
  let text = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const events = text.split(/\r?\n\r?\n/);
    text = events.pop();
    for (const event of events) {
      const data = [...event.matchAll(/^data: ?(.+)$/gm)].map(([, value]) => value).join("\n");
      if (data) print(JSON.parse(data));
    }
  }
  return "";
}

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const forwarded = listening.then(() => forward(line));
    if (JSON.parse(line).method === "notifications/initialized")
      listening = forwarded.then(listen).catch(report);
    else forwarded.catch(report);
  })
  .on("close", () => process.exit());
