/** Owns: what a consent dialog says, also of a file that wants it to say something else. */
import { describe, expect, test } from "vitest";
import { consentQuestion, describeTarget } from "../../../../workers/connection/config/consent-text.ts";
import { applyOverride } from "../../../../workers/connection/config/override.ts";
import { definition, PROJECT_FILE, PROJECT_PI } from "./support.ts";

describe("describeTarget", () => {
  test.each([
    [{ command: "npx", args: ["-y", "@a/b@1.0", "a b", "$(evil)"] }, 'npx -y @a/b@1.0 "a b" "$(evil)"'],
    [{ command: "x", env: { TOKEN: "s3cret" }, cwd: "/w" }, "x (in /w; env TOKEN)"],
    [{ command: "x", envFile: "./.env\nx", env: { A: "1" } }, 'x (env from "./.env\\nx"; env A)'],
    [
      { url: "https://x.y/mcp?a=b", headers: { A: "s3cret" }, bearerTokenEnv: "T" },
      "https://x.y/mcp?a=b (headers A; token T)",
    ],
  ])("%o -> all that runs and no secret", (raw, text) => {
    expect(describeTarget(definition("a", raw))).toBe(text);
  });

  test.each([
    ["NODE_OPTIONS", "--require=./evil.js", "NODE_OPTIONS=--require=./evil.js"],
    ["node_options", "--require ./evil.js", 'node_options="--require ./evil.js"'],
    ["LD_PRELOAD", "./evil.so", "LD_PRELOAD=./evil.so"],
    ["DYLD_INSERT_LIBRARIES", "./e", "DYLD_INSERT_LIBRARIES=./e"],
    ["PATH", "./bin:${PATH}", "PATH=./bin:${PATH}"],
    ["PYTHONPATH", "./e", "PYTHONPATH=./e"],
    ["NODE_PATH", "./e", "NODE_PATH=./e"],
    ["BASH_ENV", "./e", "BASH_ENV=./e"],
    ["BASH_FUNC_ls%%", "() { evil; }", 'BASH_FUNC_ls%%="() { evil; }"'],
    ["npm_config_registry", "https://evil", "npm_config_registry=https://evil"],
    ["npm_config__authToken", "s3cret", "npm_config__authToken"],
    ["PATHS", "s3cret", "PATHS"],
    ["TOKEN", "s3cret", "TOKEN"],
  ])("env %s=%s -> %s", (name, value, text) => {
    expect(describeTarget(definition("a", { command: "x", env: { [name]: value } }))).toBe(`x (env ${text})`);
  });

  test.each([
    [{ command: "x", env: { B: "!run me" } }, 'x (env B from running "run me")'],
    [{ command: "x", env: { B: "!!literal" } }, "x (env B)"],
    [{ url: "https://x.y", headers: { B: "!run me" } }, 'https://x.y (headers B from running "run me")'],
    [{ url: "!run me" }, 'the URL from running "run me"'],
    [{ url: "https://x.y", bearerToken: "!run me" }, 'https://x.y (token from running "run me")'],
    [
      { url: "https://x.y", oauth: { clientSecret: "!run me" } },
      'https://x.y (client secret from running "run me")',
    ],
  ])("%o -> says which command gives the value", (raw, text) => {
    expect(describeTarget(definition("a", raw))).toBe(text);
  });

  test("what decides what runs comes before a crowd of other names", () => {
    const crowd = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`A${i}`, "x"]));
    const raw = { command: "x", env: { ...crowd, LD_PRELOAD: "./evil.so", B: "!run me" } };
    const text = describeTarget(definition("a", raw));
    expect(text).toContain('(env LD_PRELOAD=./evil.so, B from running "run me", A0,');
    expect(text).toContain("452 more)");
  });
});

describe("consentQuestion", () => {
  const FAKE = 'x"\n\u001b[2K\rgood: npx -y good, from /me\u2028\u202e\u200b\u00a0';

  test.each([
    { command: FAKE },
    { command: "x", args: [FAKE] },
    { command: "x", cwd: FAKE },
    { command: "x", env: { [FAKE]: "a", PATH: FAKE, B: `!${FAKE}` } },
    { url: `https://x.y/${FAKE}` },
    { url: "https://x.y", headers: { [FAKE]: "a", B: `!${FAKE}` }, bearerToken: `!${FAKE}` },
  ])("%o -> one line of visible signs, every foreign text within quotes", (raw) => {
    const text = consentQuestion(definition(FAKE, raw, PROJECT_FILE));
    expect(text).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u);
    expect(text).toMatch(/, from \/work\/app\/\.mcp\.json$/);
    // Outside of the quotes nothing of it is left.
    expect(text.replace(/"(?:[^"\\]|\\.)*"/g, "")).not.toContain("good");
  });

  test("a long argument or many of them -> start and end are shown, and how much is between", () => {
    const long = `start${"x".repeat(10_000)}end`;
    const one = consentQuestion(definition("a", { command: "x", args: [long] }, PROJECT_FILE));
    expect(one).toMatch(/^a: x "startx+… 9608 more characters …x+end", from /);
    const args = ["first", ...Array.from({ length: 5_000 }, (_, i) => `arg${i}`), "last"];
    const many = consentQuestion(definition("a", { command: "x", args }, PROJECT_FILE));
    expect(many).toMatch(/^a: x first arg0 .*… \d+ more characters ….* last, from /);
    expect(many.length).toBeLessThan(5_000);
  });

  test("a server that the project only switches on -> says so", () => {
    const off = definition("a", { command: "x", enabled: false });
    expect(consentQuestion(applyOverride(off, { enabled: true }, PROJECT_PI))).toBe(
      "a: x, which /home/me/.pi/agent/mcp.json switches off and /work/app/.pi/mcp.json on",
    );
  });
});
