import { spawnSync } from "node:child_process";
import { configDefaults, defineConfig } from "vitest/config";
import { SummaryReporter } from "./test/support/summary-reporter.ts";

/** What a person sees is tested in a real terminal, which is the one tool that the tests do not bring along. */
const hasTmux = spawnSync("tmux", ["-V"]).status === 0;
if (!hasTmux) process.stderr.write("No tmux here: test/e2e/terminal.test.ts does not run.\n");

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [...configDefaults.exclude, ...(hasTmux ? [] : ["test/e2e/terminal.test.ts"])],
    globalSetup: ["test/support/global-setup.ts"],
    reporters: ["default", new SummaryReporter()],
    // Real threads, processes and Pi runs: time limits are for hangs, no timing decides a test.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: 2,
    // Raw TypeScript is stripped by WebAssembly in each worker thread. Where the processor has protection keys, V8's
    // list of code pages can lose one of them and ends the process: "Check failed:
    // jit_page.has_value()", nodejs/node#64500.
    execArgv: ["--no-memory-protection-keys"],
  },
});
