// Answers each call of `echo` with the text that it was given.
import { serve, text, tool } from "./lib.mjs";

serve({ "tools/call": ({ params }) => text(`echo: ${params.arguments?.text}`) }, [tool("echo")]);
