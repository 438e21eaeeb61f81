/**
 * What Pi can do without until its first paint, in one module: loaded by `later()` alone. A main thread compiles a
 * module before it runs, and this is half of all.
 */
export { startRuntime } from "./runtime/runtime.ts";
export { runProxyTool } from "./tools/proxy/run.ts";
export { runToolSearch } from "./tools/tool-search/run.ts";
export { answerUnknownCall } from "./tools/unknown-call/answer.ts";
export { runMcp } from "./ui/command/run.ts";
