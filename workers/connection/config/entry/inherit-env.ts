/**
 * The key `inheritEnv` of a server and of the settings: which variables of Pi's own environment a local server gets beside
 * those of its entry. Owns the list of what every program needs, and the names of model providers' keys. Pure.
 */
import * as z from "zod";
import { SERVE_TOKEN_VARIABLE, SERVING_VARIABLE } from "../../../../src/shared/process/serving.ts";
import type { Env } from "../../../shared/programs/find-program.ts";
import { matchesPattern } from "./patterns.ts";
import { filled } from "./shape.ts";
import { shown } from "./shown-text.ts";

/** true: all. false: what every program needs. A list: these too; `*` matches any characters. */
export type InheritEnv = boolean | readonly string[];

/** More names than an environment usually has. */
export const INHERITED = { items: 200, chars: 200 };

export const inheritEnvShape = () =>
  z.union([z.boolean(), z.array(filled().max(INHERITED.chars)).max(INHERITED.items)]);

/** Who and where the user is, how texts look, and how the network is reached (proxies, certificate authorities). */
const NEEDED = [
  SERVING_VARIABLE,
  ...["HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LC_*", "TZ", "TMPDIR", "TERM"],
  ...["http_proxy", "https_proxy", "all_proxy", "no_proxy"],
  ...["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"],
  ...["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"],
];
/** Without these, programs on Windows do not start, or find no folder of the user. */
const NEEDED_ON_WINDOWS = [
  ...["SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "OS", "TEMP", "TMP", "PUBLIC"],
  ...["USERNAME", "USERDOMAIN", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA"],
  ...["ProgramData", "ALLUSERSPROFILE", "ProgramFiles*", "ProgramW6432", "CommonProgram*"],
  ...["PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS"],
];

/**
 * The part of the environment that a server inherits. Windows compares names without regard to case. Nobody inherits the
 * token of `serve --http`, which opens all servers.
 */
export function inherited(env: Env, rule: InheritEnv | undefined, platform: NodeJS.Platform): Env {
  const onWindows = platform === "win32";
  const spelled = (name: string): string => (onWindows ? name.toUpperCase() : name);
  const isToken = (name: string): boolean => spelled(name) === SERVE_TOKEN_VARIABLE;
  if (rule === undefined || rule === true)
    return Object.fromEntries(Object.entries(env).filter(([name]) => !isToken(name)));
  const patterns = [...NEEDED, ...(onWindows ? NEEDED_ON_WINDOWS : []), ...(rule || [])].map(spelled);
  const isInherited = (name: string): boolean =>
    !isToken(name) && patterns.some((pattern) => matchesPattern(pattern, spelled(name)));
  return Object.fromEntries(Object.entries(env).filter(([name]) => isInherited(name)));
}

/** Whether every program needs the variable, here or on Windows, in whatever case. */
export const isNeeded = (name: string): boolean =>
  Object.keys(inherited({ [name]: "" }, false, "win32")).length > 0;

/** What both let through, as far as it can be written: a wanted pattern counts if one of `own` matches all that it matches. */
export function lessInherited(own: InheritEnv, wanted: InheritEnv): { value: InheritEnv; isLooser: boolean } {
  if (own === true || wanted === false) return { value: wanted, isLooser: false };
  if (wanted === true) return { value: own, isLooser: true };
  // A `*` of the wanted pattern is a character that only a `*` matches.
  const kept = wanted.filter((pattern) => (own || []).some((allowed) => matchesPattern(allowed, pattern)));
  return { value: kept.length === 0 ? false : kept, isLooser: kept.length < wanted.length };
}

export const inheritEnvWords = (rule: InheritEnv): string[] =>
  rule === true
    ? []
    : [
        rule === false || rule.length === 0
          ? "gets no variables of your environment beside PATH, HOME and the like"
          : `of your environment, it gets ${rule.map(shown).join(", ")} beside PATH, HOME and the like`,
      ];

/** Variables that hold a key of a model provider: those that Pi 1.5.2 reads (pi-ai, env-api-keys.js), and other common ones. */
const MODEL_KEYS = [
  ...["AI_GATEWAY", "ANT_LING", "ANTHROPIC", "AZURE_OPENAI", "BASETEN", "CEREBRAS", "COHERE", "DASHSCOPE"],
  ...["DEEPSEEK", "FIREWORKS", "GEMINI", "GOOGLE", "GOOGLE_CLOUD", "GOOGLE_GENERATIVE_AI", "GROQ", "KIMI"],
  ...["META", "MINIMAX", "MINIMAX_CN", "MISTRAL", "MOONSHOT", "NVIDIA", "OPENAI", "OPENCODE", "OPENROUTER"],
  ...["PERPLEXITY", "QWEN_TOKEN_PLAN", "QWEN_TOKEN_PLAN_CN", "RADIUS", "TOGETHER", "TYPESAFE", "XAI"],
  ...["XIAOMI", "XIAOMI_TOKEN_PLAN_AMS", "XIAOMI_TOKEN_PLAN_CN", "XIAOMI_TOKEN_PLAN_SGP", "ZAI"],
  ...["ZAI_CODING_CN"],
]
  .map((provider) => `${provider}_API_KEY`)
  .concat("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "HF_TOKEN")
  .concat("COPILOT_GITHUB_TOKEN", "AWS_BEARER_TOKEN_BEDROCK");

/** The names of set variables among them that a server with this rule inherits. */
export function inheritedModelKeys(
  env: Env,
  rule: InheritEnv | undefined,
  platform: NodeJS.Platform,
): string[] {
  const found = inherited(env, rule, platform);
  return MODEL_KEYS.filter((name) => found[name]);
}
