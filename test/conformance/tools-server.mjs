// The tools that the server scenarios of the suite call, on a server of the old era over stdio: `serve` gives them on under their own
// names. What each must answer stands in the suite (`conformance list --server`, and the description of each scenario).
import { setTimeout as sleep } from "node:timers/promises";
import { send, serve, tool } from "../fixtures/servers/lib.mjs";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const text = (words) => ({ type: "text", text: words });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const resource = (uri, mimeType, words) => ({ type: "resource", resource: { uri, mimeType, text: words } });
const string = (more = {}) => ({ type: "string", ...more });

const SCHEMA_2020_12 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: string(), city: string() },
    },
  },
  properties: {
    name: string(),
    address: { $ref: "#/$defs/address" },
    contactMethod: string({ enum: ["phone", "email"] }),
    phone: string(),
    email: string(),
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const titled = (key, ...names) => names.map(([value, title]) => ({ [key]: value, title }));
const FORMS = {
  test_elicitation_sep1034_defaults: {
    name: string({ default: "John Doe" }),
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: string({ enum: ["active", "inactive", "pending"], default: "active" }),
    verified: { type: "boolean", default: true },
  },
  test_elicitation_sep1330_enums: {
    untitledSingle: string({ enum: ["option1", "option2", "option3"] }),
    titledSingle: string({
      oneOf: titled(
        "const",
        ["value1", "First Option"],
        ["value2", "Second Option"],
        ["value3", "Third Option"],
      ),
    }),
    legacyEnum: string({
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    }),
    untitledMulti: { type: "array", items: string({ enum: ["option1", "option2", "option3"] }) },
    titledMulti: {
      type: "array",
      items: {
        anyOf: titled(
          "const",
          ["value1", "First Choice"],
          ["value2", "Second Choice"],
          ["value3", "Third Choice"],
        ),
      },
    },
  },
};

const waiting = new Map();
function ask(message, properties, required = []) {
  const id = `ask-${waiting.size}`;
  const params = { message, requestedSchema: { type: "object", properties, required } };
  send({ id, method: "elicitation/create", params });
  return new Promise((resolve) => waiting.set(id, resolve));
}
const completed = ({ action, content = {} }) =>
  text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`);

/** One question after the other, as a server of the old era asks; then the answer. */
async function asked(...questions) {
  const got = [];
  for (const [message, name] of questions) got.push(await ask(message, { [name]: string() }, [name]));
  return got;
}

const TOOLS = {
  test_simple_text: () => [text("This is a simple text response for testing.")],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  test_embedded_resource: () => [
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ],
  test_multiple_content_types: () => [
    text("Multiple content types test:"),
    image,
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ],
  test_tool_with_progress: async (_args, progressToken) => {
    for (const progress of [0, 50, 100]) {
      send({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      // Longer than the pause between two messages that reach the client.
      await sleep(250);
    }
    return [text("Progress is over.")];
  },
  test_elicitation: async ({ message }) => {
    const properties = { username: string(), email: string() };
    const { action, content = {} } = await ask(message, properties, Object.keys(properties));
    return [text(`User response: ${action}, ${JSON.stringify(content)}`)];
  },
  test_elicitation_sep1034_defaults: async () => [
    completed(await ask("Defaults", FORMS.test_elicitation_sep1034_defaults)),
  ],
  test_elicitation_sep1330_enums: async () => [
    completed(await ask("Enums", FORMS.test_elicitation_sep1330_enums)),
  ],
  test_reconnection: async () => {
    await sleep(100);
    return [text("Reconnected.")];
  },
  json_schema_2020_12_tool: () => [text("valid")],
  test_input_required_result_elicitation: async () => {
    const [{ content = {} }] = await asked(["What is your name?", "name"]);
    return [text(`Hello, ${content.name}!`)];
  },
  test_input_required_result_request_state: async () => {
    const { content = {} } = await ask("Please confirm", { ok: { type: "boolean" } }, ["ok"]);
    return [text(`state-ok ${content.ok}`)];
  },
  test_input_required_result_multi_round: async () => {
    const [one, two] = await asked(
      ["Step 1: What is your name?", "name"],
      ["Step 2: What is your favorite color?", "color"],
    );
    return [text(`${one.content?.name} ${two.content?.color}`)];
  },
  test_input_required_result_tampered_state: async () => {
    const [{ action }] = await asked(["Please confirm", "ok"]);
    return [text(action)];
  },
  test_input_required_result_capabilities: async () => {
    const [{ action }] = await asked(["Please confirm", "ok"]);
    return [text(action)];
  },
};

const more = {
  test_elicitation: {
    inputSchema: { type: "object", properties: { message: string() }, required: ["message"] },
  },
  json_schema_2020_12_tool: { inputSchema: SCHEMA_2020_12 },
};

serve({
  tools: [...Object.keys(TOOLS), "test_error_handling"].map((name) => tool(name, more[name])),
  onAnswer: ({ id, result = { action: "cancel" } }) => waiting.get(id)?.(result),
  onCall: async ({ name, arguments: args = {}, _meta = {} }, id) => {
    if (name === "test_error_handling")
      return send({
        id,
        result: { isError: true, content: [text("This tool intentionally returns an error for testing")] },
      });
    send({ id, result: { content: await TOOLS[name](args, _meta.progressToken) } });
  },
});
