/** Owns: pieces of 64 KiB that bring a client nothing, by what they hold. Over stdio and over HTTP. */
const notification = (method, params) => JSON.stringify({ jsonrpc: "2.0", method, params });

const STRAY = JSON.stringify({ jsonrpc: "2.0", id: 987_654, result: { content: [] } });
const MESSAGES = {
  "answers to no request": STRAY,
  "errors to no request": JSON.stringify({ jsonrpc: "2.0", id: 987_654, error: { code: 1, message: "no" } }),
  "unknown notifications": notification("notifications/of/nothing", {}),
  "changed lists": notification("notifications/tools/list_changed"),
  "progress of no call": notification("notifications/progress", { progressToken: 987_654, progress: 1 }),
  "log messages": notification("notifications/message", { level: "info", data: "x" }),
};

/** Each is one line. */
const LINES = {
  "empty lines": "",
  "lines of a return": "\r",
  "lines of a letter": "x",
  "lines that begin as a message": "{",
  "lines that pass for a message": '{"jsonrpc":"2.0"x}',
  "lines of a list": "[]",
  "lines of a number": '{"jsonrpc":"1.0"}',
  "long lines": "x".repeat(60_000),
  ...MESSAGES,
};

/** Each is a line of an event stream, or several. */
const FIELDS = {
  "empty lines": "\n",
  returns: "\r",
  ids: "id: 1\n",
  comments: ":\n",
  "long comments": `:${"x".repeat(60_000)}\n`,
  retries: "retry: 1000\n",
  types: "event: x\n",
  "unknown fields": "x\n",
  "empty events": "data:\n\n",
  "lines of one event": "data:\n",
  "events that are no message": "data: x\n\n",
  "events of another type": "event: x\ndata: x\n\n",
  ...Object.fromEntries(Object.entries(MESSAGES).map(([what, json]) => [what, `data: ${json}\n\n`])),
};

const full = (unit) => Buffer.from(unit.repeat(Math.max(1, Math.floor(65_536 / unit.length))));
export const lines = (what) => full(`${LINES[what]}\n`);
export const fields = (what) => full(FIELDS[what]);

/** Answers a function that is true after `ms` milliseconds. */
export const over = (ms) => {
  const endsAt = performance.now() + ms;
  return () => performance.now() >= endsAt;
};
