/** Vitest runs this file before each test file, also where the files share a process. */
import { hideProxies } from "./proxies.ts";

hideProxies();
