/** Owns: what npm writes, as npm 11 wrote it, in one plain sentence, and how far a run of npm is. */
import { describe, expect, test } from "vitest";
import { NpmProgress, npmFailure } from "../../../../../workers/connection/npx/npm.ts";

const AT = "http://user:secret@registry.example:4873";
const wrote = (code: string, ...lines: string[]): string =>
  [`npm error code ${code}`, ...lines.map((line) => `npm error ${line}`), ""].join("\n");
const words = (stderr: string, env: Record<string, string> = {}, packages = ["@acme/x@1"]) =>
  npmFailure(stderr, packages, env)?.words;

describe("why npm failed", () => {
  test.each([
    [
      wrote(
        "ENOTFOUND",
        `network request to https://reg.example/@acme%2fx failed, reason: getaddrinfo ENOTFOUND reg.example`,
      ),
      "npm's registry reg.example cannot be found (ENOTFOUND)",
    ],
    [
      wrote(
        "ECONNREFUSED",
        `FetchError: request to http://127.0.0.1:9/@acme%2fx failed, reason: connect ECONNREFUSED 127.0.0.1:9`,
      ),
      "npm's registry 127.0.0.1:9 cannot be reached (ECONNREFUSED)",
    ],
    [wrote("EAI_AGAIN"), "npm's registry cannot be found (EAI_AGAIN)"],
    [
      wrote(
        "E404",
        "404 Not Found - GET http://h:1/@acme%2fx",
        "404  The requested resource '@acme/x@1' could not be found or you do not have permission to access it.",
      ),
      "npm's registry h:1 has no package @acme/x",
    ],
    [
      wrote(
        "E404",
        "404 Not Found - GET http://h:1/gone",
        "404  The requested resource 'gone@^2' could not be found or you do not have permission to access it.",
      ),
      "npm's registry h:1 has no package gone, which @acme/x@1 needs",
    ],
    [
      wrote("ETARGET", "notarget No matching version found for @acme/x@1."),
      "npm's registry has no version @acme/x@1",
    ],
    [
      wrote("E401", "401 Unauthorized - GET http://h/@acme%2fx - login"),
      "npm's registry h wants a sign-in for @acme/x@1 (E401)",
    ],
    [wrote("E403", "403 403 Forbidden - GET http://h/x - no"), "npm's registry h refuses @acme/x@1 (403)"],
    [wrote("E503", "503 Service Unavailable - GET http://h/x"), "npm's registry h has a fault (503)"],
    [wrote("ENOSPC", "syscall write"), "the disk is full, so npm cannot install @acme/x@1"],
    [
      wrote("EACCES", "syscall mkdir", "path /home/ann/.npm/_cacache"),
      "npm may not write /home/ann/.npm/_cacache (EACCES)",
    ],
    [
      wrote("SELF_SIGNED_CERT_IN_CHAIN", "request to https://h/x failed"),
      "the certificate of npm's registry h is not trusted (SELF_SIGNED_CERT_IN_CHAIN)",
    ],
    ["npm ERR! code ENOTCACHED\n", "npm is set to work offline, and @acme/x@1 is not in its cache"],
  ])("%j -> %s", (stderr, sentence) => {
    expect(words(stderr)).toBe(sentence);
  });

  test("a proxy is set -> it is named, and no user and password of an address", () => {
    const stderr = wrote("ECONNRESET", `request to ${AT}/x failed, reason: socket hang up`);
    expect(words(stderr, { HTTPS_PROXY: "http://p:1" })).toBe(
      "npm's registry registry.example:4873 cannot be reached through the proxy that is set (ECONNRESET)",
    );
  });

  test("no error, or one that says nothing of the network and the package -> unknown", () => {
    for (const stderr of ["", "npm warn x", wrote("ELIFECYCLE"), wrote("1")])
      expect(words(stderr)).toBeUndefined();
  });
});

test("how far npm is -> the seconds, and what its registry last said", () => {
  const progress = new NpmProgress();
  const text = (): string => progress.text(["a", "b"], 12);
  expect(text()).toBe("npm fetches a b, 12 s, no answer of its registry yet");
  progress.see("npm http fetch GET http://h/a attempt 1 failed with ENOTFOUND\n");
  expect(text()).toBe("npm fetches a b, 12 s, its registry does not answer: ENOTFOUND");
  progress.see(
    "npm http fetch GET 200 http://h/a 13ms (cache miss)\nnpm http fetch GET 200 http://h/b 9ms\n",
  );
  expect(text()).toBe("npm fetches a b, 12 s, 2 files");
});
