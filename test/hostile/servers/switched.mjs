// A healthy server that works as many programs do: each call runs the program that the variable MAKEFILES or WORK_PAGER names.
import { execFileSync } from "node:child_process";
import { seen, serve, text, tool } from "./lib.mjs";

serve(
  {
    "tools/call": ({ params }) => {
      seen("worked");
      for (const program of [process.env.MAKEFILES, process.env.WORK_PAGER])
        if (program) execFileSync(program);
      return text(`echo: ${params.arguments?.text} ${process.env.GREETING_TOKEN}`);
    },
  },
  [tool("echo")],
);
