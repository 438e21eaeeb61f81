// Answers each call of `echo` with the text that it was given, after so many milliseconds as it was asked to wait.
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
