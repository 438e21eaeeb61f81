/** Vitest runs this file before each test file, also where the files share a process. */
import { afterAll, afterEach } from "vitest";
import { cleanUpAfterFile, cleanUpAfterTest } from "./cleanup.ts";

afterEach(cleanUpAfterTest);
afterAll(cleanUpAfterFile);
