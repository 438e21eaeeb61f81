/**
 * What Pi has been told about our tools. Owns: registering, following the catalog, withdrawing, restoring the tools of a
 * resumed branch, and which tools are direct. Must not: know how a tool is called (tools/definition) or found.
 * Called by: session. Each registration after Pi has bound costs Pi a rebuild of its registry, so this folder registers
 * as few tools as possible, as early as possible.
 * To add a reason to register or withdraw tools: a function on the book (book.ts), and a method of the registrar.
 */
export { type DeclaredTool, declaredTools, ownersOf, serverByName } from "./branch.ts";
export { type DirectRule, directRule } from "./direct.ts";
export { createLateTools } from "./late-tools.ts";
export { type Activation, createRegistrar, type Registrar } from "./registrar.ts";
