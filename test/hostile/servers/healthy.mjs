// Answers each call of `echo` with the call's `text`, after `waitMs` milliseconds if the call gives them.
import { send, serve, text, tool } from "./lib.mjs";

const answer = ({ id, params }) => send({ id, result: text(`echo: ${params.arguments?.text}`) });
serve(
  {
    "tools/call": (message) => {
      const waitMs = message.params.arguments?.waitMs ?? 0;
      if (waitMs > 0) setTimeout(answer, waitMs, message);
      else answer(message);
    },
  },
  [tool("echo")],
);
