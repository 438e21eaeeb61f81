/** Owns: which message answers which request over Streamable HTTP. */
import { describe, expect, test } from "vitest";
import type { JSONRPCMessage, JSONRPCRequest } from "../../../../../../workers/connection/mcp/wire/wire.ts";
import { OpenExchanges } from "../../../../../../workers/connection/transports/http/exchange.ts";

const answer = (id: number | string): JSONRPCMessage => ({ jsonrpc: "2.0", id, result: {} });
const error = (id: number): JSONRPCMessage => ({ jsonrpc: "2.0", id, error: { code: 1, message: "no" } });

const request = (id: number | string): JSONRPCRequest => ({ jsonrpc: "2.0", id, method: "tools/call" });

function opened() {
  const messages: JSONRPCMessage[] = [];
  const open = new OpenExchanges((message) => messages.push(message));
  return { open, messages };
}

describe("deliver", () => {
  test.each<[string, JSONRPCMessage, boolean]>([
    ["its result", answer(7), true],
    ["its error", error(7), true],
    ["the answer to another request", answer(8), false],
    ["an answer with the id as text", answer("7"), false],
    [
      "an error without an id",
      { jsonrpc: "2.0", error: { code: 1, message: "no" } } as JSONRPCMessage,
      false,
    ],
    ["a request of the server with the same id", { jsonrpc: "2.0", id: 7, method: "ping" }, false],
    ["a notification", { jsonrpc: "2.0", method: "notifications/message" }, false],
  ])("%s -> handed on once, the request is answered: %3$s", (_name, message, isAnswered) => {
    const { open, messages } = opened();
    const exchange = open.open(request(7));
    let told = 0;
    exchange.onAnswered = () => {
      // The client has the answer already when the stream is ended for it.
      expect(messages).toEqual([message]);
      told++;
    };
    open.deliver(message);
    expect(messages).toEqual([message]);
    expect(exchange.answered).toBe(isAnswered);
    expect(told).toBe(isAnswered ? 1 : 0);
  });

  test("an answer that the transport keeps for itself -> not handed to the client", () => {
    const { open, messages } = opened();
    const kept: JSONRPCMessage[] = [];
    open.open(request("reopen-1"), (message) => kept.push(message));
    open.deliver(answer("reopen-1"));
    expect(kept).toEqual([answer("reopen-1")]);
    expect(messages).toEqual([]);
  });

  test("a late answer, after the request is over -> a message like any other", () => {
    const { open, messages } = opened();
    const exchange = open.open(request(7));
    open.close(7);
    open.deliver(answer(7));
    expect(messages).toEqual([answer(7)]);
    expect(exchange.answered).toBe(false);
  });
});

test("asked -> the open requests by their ids as texts", () => {
  const { open } = opened();
  open.open(request(1));
  open.open(request("reopen-1"));
  open.close(1);
  expect([...open.asked()]).toEqual([["reopen-1", "tools/call"]]);
});

describe("cancel", () => {
  test("one -> its signal alone; an id that is not open -> nothing", () => {
    const { open } = opened();
    const [one, two] = [open.open(request(1)), open.open(request(2))];
    open.cancel(1);
    open.cancel(3);
    expect([one, two].map(({ controller }) => controller.signal.aborted)).toEqual([true, false]);
  });

  test("cancelAll -> all that are open; a request that is over keeps its signal", () => {
    const { open } = opened();
    const exchanges = [open.open(request(1)), open.open(request(2)), open.open(request(3))];
    open.close(2);
    open.cancelAll();
    expect(exchanges.map(({ controller }) => controller.signal.aborted)).toEqual([true, false, true]);
  });
});
