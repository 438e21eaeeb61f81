import { delimiter, relative, sep } from "node:path";
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { hasKeyring, hasSandbox, hasTmux } from "./test/support/has-program.ts";
import { ALL_ROWS, THOROUGH } from "./test/support/long.ts";
import { PATIENCE_MS, TEST_MS } from "./test/support/patience.ts";
import { SlowestFirst } from "./test/support/slowest-first.ts";
import { SummaryReporter } from "./test/support/summary-reporter.ts";

/** Whether this checkout lies below the folder. */
const isAbove = (folder: string): boolean => {
  const way = relative(folder, import.meta.dirname);
  return way !== "" && !way.startsWith("..");
};

/** Files of which each test runs in a real terminal. */
const TERMINALS = ["test/e2e/*terminal.test.ts", "test/e2e/panel.test.ts", "test/cli/terminal.test.ts"];
if (!hasTmux()) process.stderr.write("No tmux here: what needs a real terminal does not run.\n");

/** Sandboxes on Linux are tried for real. */
const SANDBOXES = [
  ...["test/worker/room.test.ts", "test/worker/rooms.test.ts", "test/cli/room.test.ts"],
  ...["test/cli/run.test.ts", "test/e2e/policy.test.ts"],
];
if (!hasSandbox())
  process.stderr.write(
    `No bubblewrap works here, or this checkout is in a temp folder: ${SANDBOXES.join(", ")} do not run.\n`,
  );

const KEYRING = hasKeyring() ? [] : ["test/**/*keyring.test.ts"];
if (KEYRING.length > 0)
  process.stderr.write("No gnome-keyring with secret-tool here: **/*keyring.test.ts do not run.\n");

/**
 * npm puts `node_modules/.bin` of all folders above the checkout into PATH. If the checkout is below the temp folder, those
 * are folders above the tests' clones as well, which this package rightly keeps from a server: a person's PATH has none.
 */
const PACKAGES = `${sep}node_modules${sep}.bin`;
process.env.PATH = (process.env.PATH ?? "")
  .split(delimiter)
  .filter((entry) => !entry.endsWith(PACKAGES) || !isAbove(entry.slice(0, -PACKAGES.length)))
  .join(delimiter);

/**
 * Tests of real threads, processes and Pi runs wait more than they compute: two cores run five files at a time. With
 * four, a core is idle for a tenth of the time; six take no less time, and each test waits longer for the others.
 */
const WORKERS = 5;

/** A thread's start fills V8's first young generation several times: with room for all of it, nothing is collected. */
const ROOM_AT_START = ["--min-semi-space-size=16"];

/**
 * For tests whose process starts one packed worker after the other. Each start finds the code of the first one in
 * Node's compile cache, which holds only what V8 compiles while a file loads: with this flag, all functions.
 */
const WHOLE_FILES_COMPILED = ["--no-lazy"];

/** For the same tests: a worker thread that ends within a second never gets back what the optimizing compilers take. */
const NOT_OPTIMIZED = ["--no-maglev", "--no-turbofan"];

/** A process has one compile cache. The other files of the folder share one, this file needs an empty one. */
const OWN_COMPILE_CACHE = ["test/worker/compile-cache.test.ts"];

/**
 * What a server over stdio promises holds as well when sessions share it: these files run a second time through the hub
 * (test/support/shared.ts). Not those about processes that the worker itself must end (respawn, failed-start, refused-kill), and
 * about the key `shared` itself (panel). `ALL_ROWS=1` runs more of them, the long run all.
 */
const STDIO = [
  "failures",
  ...(ALL_ROWS ? ["stdio", "modern-stdio", "lifecycle", "messages", "chaos"] : []),
  ...(process.env.SHARED_SOAK_MS === undefined
    ? []
    : [
        ...["modern-eras", "modern-questions", "results", "resources", "prompts", "server-log"],
        ...["roots", "said", "edits", "config-watch"],
      ]),
];

interface RealProject {
  include: string[];
  exclude?: string[];
  execArgv?: string[];
  env?: Record<string, string>;
}

/** All test files of these folders of test/. */
const folders = (...names: string[]): string[] => names.map((name) => `test/${name}/**/*.test.ts`);

/**
 * Files that start threads, processes or Pi. Files share processes: the start of a test process costs more than the
 * start of a Pi. Processes are shared within a project only, so folders whose processes have equal flags are one
 * project. support/cleanup-setup.ts ends what a test has started.
 */
const realProject = (
  name: string,
  { include, exclude = [], execArgv = [], env = {} }: RealProject,
): TestProjectInlineConfiguration => ({
  extends: true,
  test: {
    name,
    include,
    exclude: [...configDefaults.exclude, ...exclude],
    isolate: false,
    execArgv: [...ROOM_AT_START, ...execArgv],
    // A sign-in must never open the browser of the person who runs the tests.
    env: { BROWSER: "none", ...env },
    maxWorkers: WORKERS,
  },
});

export default defineConfig({
  test: {
    reporters: ["default", new SummaryReporter()],
    setupFiles: ["test/support/proxies-setup.ts", "test/support/cleanup-setup.ts"],
    globalSetup: ["test/support/built-setup.ts", "test/support/global-setup.ts"],
    // Real threads, processes and Pi runs: time limits are for hangs, no timing decides a test.
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
    sequence: { sequencer: SlowestFirst },
    tags: [{ name: THOROUGH, description: "A second proof, which ALL_ROWS=1 runs (test/README.md)." }],
    tagsFilter: ALL_ROWS ? [] : [`!${THOROUGH}`],
    // Raw TypeScript is stripped by WebAssembly in each worker thread. Where the processor has protection keys, V8's
    // list of code pages can lose one of them and ends the process: "Check failed:
    // jit_page.has_value()", nodejs/node#64500.
    execArgv: ["--no-memory-protection-keys"],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/boundary/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...KEYRING],
          // Files share processes: loading the modules again for each file took longer than the tests.
          isolate: false,
          maxWorkers: WORKERS,
        },
      },
      realProject("pi", {
        include: folders("hostile", "e2e", "cli"),
        exclude: [...(hasTmux() ? [] : TERMINALS), ...(hasSandbox() ? [] : SANDBOXES)],
      }),
      realProject("threads", {
        include: folders("conformance", "oauth", "worker"),
        exclude: [...OWN_COMPILE_CACHE, ...(hasSandbox() ? [] : SANDBOXES), ...KEYRING],
        execArgv: [...WHOLE_FILES_COMPILED, ...NOT_OPTIMIZED],
      }),
      realProject("shared", {
        include: STDIO.map((name) => `test/worker/${name}.test.ts`),
        execArgv: [...WHOLE_FILES_COMPILED, ...NOT_OPTIMIZED],
        env: { PMT_SHARED: "1" },
      }),
      realProject("compile-cache", { include: OWN_COMPILE_CACHE }),
    ],
  },
});
