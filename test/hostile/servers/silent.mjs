// Reads everything and never answers.
import { createInterface } from "node:readline";
import { seen } from "./lib.mjs";

createInterface({ input: process.stdin }).on("line", () => seen("silent"));
