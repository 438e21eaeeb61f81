/**
 * Owns: which server scenarios of the conformance suite `pi-mcp-threads serve` does not pass, each with the reason. All others that a
 * suite lists for a revision run and must pass; one of these that passes must leave the list.
 */
const TOOLS_ALONE = "serve gives tools, and neither resources, prompts, completion nor log levels";
const NO_SAMPLING =
  "serve passes neither sampling nor roots on: both are deprecated, and no server is offered them";
const OWN_KEYS = "the suite wants the server's own key of a question, and serve names each of its own";
const NO_REPLAY = "serve keeps no messages for a stream that broke: a client calls again";

const WITHOUT_TOOLS = [
  "completion-complete",
  "resources-list",
  "resources-read-text",
  "resources-read-binary",
  "resources-templates-read",
  "prompts-list",
  "prompts-get-simple",
  "prompts-get-with-args",
  "prompts-get-embedded-resource",
  "prompts-get-with-image",
];

const all = (names: readonly string[], why: string): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, why]));

const OF_2025 = {
  ...all([...WITHOUT_TOOLS, "logging-set-level", "tools-call-with-logging"], TOOLS_ALONE),
  ...all(["resources-subscribe", "resources-unsubscribe"], TOOLS_ALONE),
  "tools-call-sampling": NO_SAMPLING,
  "server-sse-polling": NO_REPLAY,
};

/** By suite, with the revision that is spoken. */
export const SERVE = {
  stable: { revision: "2025-11-25", failures: OF_2025 },
  next: { revision: "2025-11-25", failures: OF_2025 },
  modern: {
    revision: "2026-07-28",
    failures: {
      ...all([...WITHOUT_TOOLS, "sep-2164-resource-not-found", "caching"], TOOLS_ALONE),
      "input-required-result-non-tool-request": TOOLS_ALONE,
      "server-stateless": `${NO_SAMPLING}: the suite's tool for the capability that is missing asks for it`,
      ...all(
        [
          "input-required-result-basic-sampling",
          "input-required-result-basic-list-roots",
          "input-required-result-multiple-input-requests",
          "input-required-result-capability-check",
        ],
        NO_SAMPLING,
      ),
      "input-required-result-basic-elicitation": OWN_KEYS,
      "input-required-result-ignore-extra-params": OWN_KEYS,
      "http-custom-header-server-validation":
        "headers that repeat parameters are for gateways between client and server; serve is on loopback",
    },
  },
} as const;
