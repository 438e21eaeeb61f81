/**
 * Owns: one model turn as a stream of OpenAI chat completion chunks (server-sent events).
 * Must not: know about scripts, requests or sockets.
 * Called by: model.ts.
 */

/** One answer of the scripted model: text, tool calls, or both. An empty object means empty text. */
export interface ModelTurn {
  text?: string;
  toolCalls?: readonly { name: string; args: unknown }[];
}

/** Token counts for Pi. They are small and constant, so that Pi never compacts a session on its own. */
const USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };

/**
 * The body of the response, in the order a real endpoint sends it: role, text, calls, end, usage, `[DONE]`.
 * `turnNumber` makes the ids of tool calls unique over a session: `call_<turn>_<index>`.
 */
export function encodeTurn(turn: ModelTurn, turnNumber: number): string {
  const calls = (turn.toolCalls ?? []).map((call, index) => ({
    index,
    id: `call_${turnNumber}_${index}`,
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.args) },
  }));
  const deltas: unknown[] = [{ role: "assistant", content: "" }];
  if (turn.text !== undefined) deltas.push({ content: turn.text });
  for (const call of calls) deltas.push({ tool_calls: [call] });
  const finish = calls.length > 0 ? "tool_calls" : "stop";
  const chunks = [
    ...deltas.map((delta) => chunk(turnNumber, { choices: [{ index: 0, delta, finish_reason: null }] })),
    chunk(turnNumber, { choices: [{ index: 0, delta: {}, finish_reason: finish }] }),
    chunk(turnNumber, { choices: [], usage: USAGE }),
  ];
  return `${chunks.map((body) => `data: ${JSON.stringify(body)}\n\n`).join("")}data: [DONE]\n\n`;
}

function chunk(turnNumber: number, body: object): object {
  return {
    id: `chatcmpl-${turnNumber}`,
    object: "chat.completion.chunk",
    created: 0,
    model: "stub-model",
    ...body,
  };
}
