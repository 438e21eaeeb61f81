/**
 * What the room of a server shows, hides and lets be written, as real paths of this machine. Owns the lists of what rooms
 * hide. A path that is not there hides nothing; a path that should be writable and is not there is an error.
 */
import { createHash } from "node:crypto";
import { open, realpath } from "node:fs/promises";
import { devNull, tmpdir } from "node:os";
import { basename, delimiter, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { HOSTS } from "../../../src/shared/import-names.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { isFolder } from "../../shared/files/file-system.ts";
import { give, makeFolder } from "../../shared/files/owner.ts";
import { isWithin } from "../../shared/programs/find-program.ts";
import type { Launch } from "../../shared/programs/processes.ts";
import { isUsersOwn, type ServerDefinition } from "../config/entry/definition.ts";
import { expandHome } from "../config/entry/interpolate.ts";
import type { Sandbox } from "../config/entry/sandbox.ts";
import { configSources } from "../config/files/sources.ts";
import { hostSources } from "../config/hosts/hosts.ts";
import { type Mount, readMounts, seenAgain } from "./mounts.ts";
import { hiddenFor, socketPaths } from "./sockets.ts";

/** What a rule does with a path and all below it: `empty` is for folders, `closed` for everything else. */
type Effect = "empty" | "closed" | "read" | "write";

export interface Rule {
  /** Absolute, without links. */
  path: string;
  effect: Effect;
  /** Only so that the folder gets no other name: what lies deeper would then be free. */
  isPin?: true;
}

export interface Plan {
  /** In order: a later rule wins below its path. What no rule names can be read. */
  rules: readonly Rule[];
  /** The server's own folder, which is writable. */
  data: string;
  /** The folder for temporary files: on Linux one that nobody else sees, elsewhere one in `data`, which other processes of the server use. */
  temp: string;
  /** A file without content, which stands where a file is hidden: programs stop at one that they may not open. */
  nothing: string;
  cwd: string;
  network: boolean;
}

/** Keys, sign-ins, passwords, what browsers and other agents keep, and histories of shells; from the home folder. */
const PRIVATE = [
  ...[".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".config/containers"],
  ...[".config/gh", ".config/glab-cli", ".config/hub", ".config/git/credentials", ".git-credentials"],
  ...[
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".config/uv",
    ".gem/credentials",
  ],
  ...[".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties"],
  ...[".vault-token", ".terraform.d", ".config/doctl", ".config/hcloud", ".oci", ".config/rclone"],
  ...[
    ".pgpass",
    ".my.cnf",
    ".mongorc.js",
    ".config/op",
    ".1password",
    ".config/1Password",
    ".password-store",
  ],
  ...[".local/share/keyrings", ".local/share/kwalletd", ".config/sops", ".config/age"],
  ...[".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"],
  ...[
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    ".var/app",
  ],
  ...["Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Mail", "Library/Messages"],
  ...["Library/Application Support/Google/Chrome", "Library/Application Support/Firefox"],
  ...["Library/Application Support/BraveSoftware", "Library/Application Support/Microsoft Edge"],
  ...["Library/Application Support/Arc", "Library/Group Containers", "Library/Thunderbird"],
  // Where programs of .config above keep the same on macOS.
  ...["sops", "glab-cli", "doctl", "pip", "Chromium", "Vivaldi", "com.operasoftware.Opera"].map(
    (name) => `Library/Application Support/${name}`,
  ),
  ...[".claude", ".claude.json", ".codex", ".gemini", ".cursor", ".copilot", ".config/github-copilot"],
  ...[".local/share/opencode", ".config/opencode", ".opencode/opencode.json", ".opencode/opencode.jsonc"],
  ...[
    ".config/goose",
    ".pi",
    ".config/mcp",
    ".agents/mcp",
    ".codeium",
    ".config/Claude",
    ".config/Code/User",
  ],
  ...[
    ".config/Cursor/User",
    ".config/Windsurf/User",
    ".local/share/amp",
    ".qwen",
    ".continue",
    ".factory",
    ".kiro",
  ],
  ...["Claude", "Code/User", "Cursor/User", "Windsurf/User"].map(
    (name) => `Library/Application Support/${name}`,
  ),
  // Tokens of services for models and packages, and of clouds.
  ...[".cache/huggingface/token", ".composer/auth.json", ".config/composer/auth.json", ".pulumi", ".s3cfg"],
  ...[
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
  ],
  ...[".psql_history", ".mysql_history", ".Xauthority", ".ICEauthority"],
];

/** Variables that lead to such places elsewhere; a list of paths has the system's mark between them. */
export const LEADING_TO_PRIVATE = [
  ...["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "CLAUDE_CONFIG_DIR"],
  ...["CLOUDSDK_CONFIG", "CODEX_HOME", "COPILOT_HOME", "DOCKER_CONFIG"],
  ...["GH_CONFIG_DIR", "GLAB_CONFIG_DIR", "GNUPGHOME", "GOOGLE_APPLICATION_CREDENTIALS"],
  ...["HCLOUD_CONFIG", "HF_TOKEN_PATH", "HISTFILE", "ICEAUTHORITY", "KUBECONFIG"],
  ...["MYSQL_HISTFILE", "NETRC", "NODE_REPL_HISTORY", "NPM_CONFIG_USERCONFIG"],
  ...["npm_config_userconfig", "OCI_CLI_CONFIG_FILE", "OP_CONFIG_DIR", "PASSWORD_STORE_DIR"],
  ...["PGPASSFILE", "PIP_CONFIG_FILE", "PSQL_HISTORY", "PYTHON_HISTORY"],
  ...["RCLONE_CONFIG", "REGISTRY_AUTH_FILE", "SOPS_AGE_KEY_FILE", "TF_CLI_CONFIG_FILE"],
  ...["UV_CONFIG_FILE", "XAUTHORITY"],
];

/** `PRIVATE` in the home folder, and where the variables of this process have moved it (XDG Base Directory Specification). */
function privatePaths(home: string, session: string): string[] {
  const moved = (folder: string, variable: string, of = PRIVATE): string[] => {
    const base = process.env[variable];
    if (!base || !isAbsolute(base)) return [];
    return of.filter((path) => path.startsWith(folder)).map((path) => join(base, path.slice(folder.length)));
  };
  const named = LEADING_TO_PRIVATE.flatMap((variable) => (process.env[variable] ?? "").split(delimiter));
  return [
    ...PRIVATE.map((path) => join(home, path)),
    ...moved(".config/", "XDG_CONFIG_HOME"),
    ...moved(".local/share/", "XDG_DATA_HOME"),
    ...moved(".cargo/", "CARGO_HOME"),
    ...moved(".gradle/", "GRADLE_USER_HOME"),
    ...moved("", "ZDOTDIR", [".zsh_history"]),
    // One that leads to the whole home folder would leave nothing to work with.
    ...named.filter((path) => isAbsolute(path) && !isWithin(home, path) && !isWithin(session, path)),
  ];
}

/** Of the agent folder, what holds code and no secret. All else there is hidden: sign-ins, keys, transcripts, logs. */
const AGENT_SHOWN = ["npm", "git", "bin", "extensions", "skills", "prompts", "themes", "mcp-npm"];
/** In a writable folder, what other programs run or obey when they next look there. */
const OBEYED = [".git", ".pi", ".mcp.json", ".claude", ".cursor", ".vscode", ".envrc"];
const ROOMS_FOLDER = "mcp-rooms";
const NAME_CHARS = 40;

/** What systems keep below /run that programs need: programs of NixOS, and the network's names. */
const RUN_SHOWN = ["/run/current-system", "/run/opengl-driver", "/run/wrappers", "/run/systemd/resolve"];

const real = (path: string): Promise<string | undefined> => realpath(path).catch(() => undefined);

/** The files of servers that this package reads, in which the tokens of all other servers may stand. */
function serverFiles({ agentDir, session: cwd, home, configPath }: RoomPlace): string[] {
  const { platform, env } = process;
  const facts = { agentDir, cwd, home, configPath, platform, env, projectTrusted: false };
  const sources = [...configSources(facts), ...HOSTS.flatMap((host) => hostSources(host, facts))];
  return sources.map(({ file }) => file);
}

/** A name that two servers never share: of the server, and of the file that defines it. */
function dataName({ name, file }: ServerDefinition): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([file, name]))
    .digest("hex")
    .slice(0, 8);
  return `${name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, NAME_CHARS)}-${hash}`;
}

/** A mount each. */
const RULES = 2_000;

const depthOf = (path: string): number => path.split(sep).filter((part) => part !== "").length;

/**
 * Parents first, so that what lies deeper counts; of two rules for one path the later one in the list counts. A rule that
 * changes nothing where it lies is left out.
 */
export function inOrder(rules: readonly Rule[]): Rule[] {
  const byPath = new Map(rules.map((rule) => [rule.path, rule]));
  const kept = new Map<string, Rule>();
  const above = (path: string): Effect => {
    for (let at = path; ; at = dirname(at)) {
      const found = kept.get(at);
      if (found) return found.effect;
      if (at === dirname(at)) return "read";
    }
  };
  const isHidden = (effect: Effect): boolean => effect === "empty" || effect === "closed";
  for (const rule of [...byPath.values()].sort((a, b) => depthOf(a.path) - depthOf(b.path))) {
    const before = above(dirname(rule.path));
    // In a hidden folder a pin would open what it pins.
    if (
      rule.isPin ? before === "write" : before !== rule.effect && !(isHidden(before) && isHidden(rule.effect))
    )
      kept.set(rule.path, rule);
  }
  return [...kept.values()];
}

/** Between each folder that may be written and what may not below it: a mount point gets no other name (rename(2), EBUSY). */
function pins(rules: readonly Rule[]): Rule[] {
  const found = new Map<string, Rule>();
  const writable = rules.filter(({ effect }) => effect === "write").map(({ path }) => path);
  for (const { path, effect } of rules) {
    if (effect === "write") continue;
    for (const root of writable.filter((folder) => folder !== path && isWithin(path, folder)))
      for (let at = dirname(path); at !== root; at = dirname(at))
        found.set(at, { path: at, effect: "write", isPin: true });
  }
  return [...found.values()];
}

/**
 * The folders that may be written, and whether a path still leads where its user meant it to. Below such a folder the server
 * decides what a name leads to, and would be told of another place in its next start: a link there counts only within it.
 * `given`: folders with content of others, where links count no more.
 */
async function createTrust(
  wanted: readonly string[],
  given: readonly string[],
): Promise<(path: string, at: string) => Promise<boolean>> {
  const roots = [...given];
  const isTrusted = async (path: string, at: string): Promise<boolean> => {
    for (let above = dirname(path); above !== dirname(above); above = dirname(above)) {
      const place = await real(above);
      const root = roots.find((folder) => place !== undefined && isWithin(place, folder));
      if (root !== undefined) return isWithin(at, root);
    }
    return true;
  };
  for (const path of wanted.toSorted((a, b) => depthOf(a) - depthOf(b))) {
    const at = await real(path);
    if (at !== undefined && (await isTrusted(path, at))) roots.push(at);
  }
  return isTrusted;
}

/** A hidden path that is or passes a link in a folder of `roots`: whoever replaces the link decides what the next start hides. */
async function loosePath(hidden: readonly string[], roots: readonly string[]): Promise<string | undefined> {
  if (roots.length === 0) return undefined;
  for (const path of hidden) {
    const place = await real(path);
    // What is hidden by its own name, too, stays hidden.
    if (place === undefined || place === path || hidden.includes(place)) continue;
    for (let at = path; at !== dirname(at); at = dirname(at)) {
      const folder = await real(dirname(at));
      if (folder === undefined || (await real(at)) === join(folder, basename(at))) continue;
      if (roots.some((root) => isWithin(folder, root))) return path;
    }
  }
  return undefined;
}

export interface RoomPlace {
  agentDir: string;
  /** The session's folder. */
  session: string;
  home: string;
  /** `--mcp-config`. */
  configPath?: string | undefined;
}

export const noRoom = (server: string, what: string, remedy: string): ThreadsError =>
  new ThreadsError("spawn_failed", `${server}: its sandbox cannot be made: ${what}.`, {
    remedy,
    data: { server, reason: "sandbox" },
  });

type RulesFor = (paths: readonly string[], effect: "hide" | "read" | "write") => Promise<Rule[]>;

/** The paths that there are, each with what becomes of it. */
const rulesWith =
  (isTrusted: (path: string, at: string) => Promise<boolean>): RulesFor =>
  async (paths, effect) => {
    const found = await Promise.all(
      paths.map(async (path): Promise<Rule[]> => {
        const at = await real(path);
        if (at === undefined) return [];
        // A history that its user wants nowhere leads there, and programs need it.
        if (effect === "hide" && at === devNull) return [];
        if (effect === "hide") return [{ path: at, effect: (await isFolder(at)) ? "empty" : "closed" }];
        return (await isTrusted(path, at)) ? [{ path: at, effect }] : [];
      }),
    );
    return found.flat();
  };

/** The paths, and where else the file system shows the same. */
async function everywhere(paths: readonly string[], mounts: readonly Mount[]): Promise<string[]> {
  if (mounts.length === 0) return [...paths];
  const found = await Promise.all(paths.map(real));
  return [...paths, ...found.flatMap((at) => (at === undefined ? [] : seenAgain(at, mounts)))];
}

/** `own`: the folder that its entry names, if it may write there. `around`: what it sees also where temp folders are hidden. */
async function whereabouts(
  definition: ServerDefinition,
  { program, cwd }: Pick<Launch, "program" | "cwd">,
  { agentDir, session, home }: RoomPlace,
): Promise<{ own: string[]; around: string[]; homeAt: string; sessionAt: string }> {
  const { base, target } = definition;
  const at = async (path: string): Promise<string> => (await real(path)) ?? path;
  const [homeAt, cwdAt, sessionAt, agentAt] = [
    await at(home),
    await at(cwd),
    await at(session),
    await at(agentDir),
  ];
  // A plugin's own folder, and one above the session's, is where its server runs anyway, and not what the entry asks for.
  const isUsual = base !== undefined && isWithin(cwdAt, await at(base.folder));
  // A project would get by its server's folder what no key of its sandbox gives.
  const isElsewhere = !isUsersOwn(definition) && !isUsual && !isWithin(cwdAt, sessionAt);
  const isNamed = target.kind === "stdio" && target.cwd !== undefined;
  // Whoever may write the home folder decides what the person's next shell runs.
  const isOwn = isNamed && !isWithin(homeAt, cwdAt) && !isUsual && !isElsewhere;
  const visited = [session, ...(isElsewhere ? [] : [cwd]), dirname(program)];
  const inAgent = await Promise.all(visited.map(async (path) => isWithin(await at(path), agentAt)));
  // Who works in Pi's folder does not open it.
  const outside = visited.filter((_, index) => !inAgent[index]);
  const around = [home, ...outside, ...(base ? [base.folder] : []), ...RUN_SHOWN];
  return { own: isOwn ? [cwd] : [], around, homeAt, sessionAt };
}

/** An empty file. Its owner may not write it either, so it is made once. */
async function makeNothing(path: string): Promise<void> {
  const file = await open(path, "wx", 0o444).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  if (!file) return;
  await give(file, dirname(path)).finally(() => file.close());
}

/** Throws `spawn_failed` if to hide the runtime folder would hide what the server needs. */
async function refuseWide(name: string, runtime: string, needed: readonly string[]): Promise<void> {
  const at = (await real(runtime)) ?? runtime;
  if (needed.some((one) => isWithin(one, at)))
    throw noRoom(
      name,
      `XDG_RUNTIME_DIR (${runtime}) is or holds a folder in which it works, and would have to be hidden`,
      "Set XDG_RUNTIME_DIR to a private folder of its own.",
    );
}

/** Makes the server's own folder. Throws `spawn_failed` if a path that should be writable is not there. */
export async function planRoom(
  room: Sandbox,
  definition: ServerDefinition,
  { program, cwd }: Pick<Launch, "program" | "cwd">,
  place: RoomPlace,
): Promise<Plan> {
  const { agentDir, session, home } = place;
  const { name } = definition;
  const absolute = (path: string): string =>
    resolve(session, expandHome(path, { home, platform: process.platform }));
  const data = join(agentDir, ROOMS_FOLDER, dataName(definition));
  const temp = process.platform === "linux" ? ((await real("/tmp")) ?? "/tmp") : join(data, "tmp");
  for (const made of [data, ...(temp.startsWith(data) ? [temp] : [])]) await makeFolder(made);
  const nothing = join(agentDir, ROOMS_FOLDER, "nothing");
  await makeNothing(nothing);
  const { base } = definition;
  const { own, around, homeAt, sessionAt } = await whereabouts(definition, { program, cwd }, place);
  const kept = base?.data === undefined ? [] : [base.data];
  const wanted = [...own, ...kept, ...room.write.map(absolute)];
  const missing = (
    await Promise.all(wanted.map(async (path) => ((await real(path)) === undefined ? [path] : [])))
  ).flat()[0];
  if (missing !== undefined)
    throw noRoom(
      name,
      `${missing}, which it should write, does not exist`,
      "Make it, or correct the path in mcp.json.",
    );
  // Others fill a project with links, unless it holds the home folder: there links are the user's.
  const rulesFor = rulesWith(await createTrust(wanted, isWithin(homeAt, sessionAt) ? [] : [sessionAt]));
  const secret = [...privatePaths(home, session), ...serverFiles(place)];
  // The hub's secret may lie there, by which one has it start programs. A path that is not absolute counts for nobody.
  const runtime = [process.env.XDG_RUNTIME_DIR ?? ""].filter(isAbsolute);
  for (const one of runtime) await refuseWide(name, one, [homeAt, sessionAt]);
  const mounts = await readMounts();
  const [places, shown, programs, privates, agents, hidden, opened, obeyed, writable] = await Promise.all([
    rulesFor(await everywhere([tmpdir(), "/tmp", "/var/tmp", "/run", ...runtime, agentDir], mounts), "hide"),
    // These may lie in a temp folder; what of them is private is hidden again.
    rulesFor([...around, "/etc/resolv.conf"], "read"),
    rulesFor([program], "read"),
    rulesFor(await everywhere(secret, mounts), "hide"),
    rulesFor(
      AGENT_SHOWN.map((path) => join(agentDir, path)),
      "read",
    ),
    rulesFor(await everywhere(room.hide.map(absolute), mounts), "hide"),
    rulesFor(room.read.map(absolute), "read"),
    rulesFor(
      wanted.flatMap((folder) => OBEYED.map((path) => join(folder, path))),
      "read",
    ),
    rulesFor(wanted, "write"),
  ]);
  const loose = await loosePath(
    [...secret, ...room.hide.map(absolute)],
    writable.map(({ path }) => path),
  );
  if (loose !== undefined)
    throw noRoom(
      name,
      `${loose} is or passes a link in a folder that it may write, and could be made to lead elsewhere`,
      "Name in sandbox.hide what it leads to, or a smaller folder in sandbox.write.",
    );
  const folder = (await real(data)) ?? data;
  // Pi may run in a temp folder itself, or the program lie there: that opens the program, and not the folder.
  const isPlace = ({ path }: Rule): boolean => places.some((place) => place.path === path);
  const visible = shown.filter((rule) => !isPlace(rule));
  const lone = programs.filter(({ path }) =>
    shown.some((rule) => isPlace(rule) && rule.path === dirname(path)),
  );
  const needed = [...shown, ...programs, ...agents, ...opened, ...writable].map(({ path }) => path);
  const sockets = await hiddenFor(await socketPaths(), [homeAt, sessionAt, folder, ...needed]);
  const all: Rule[] = [
    ...[...places, ...visible, ...lone, ...privates, ...sockets],
    ...[...agents, ...opened, ...obeyed, ...writable, ...hidden],
    { path: folder, effect: "write" },
  ];
  const rules = inOrder([...pins(inOrder(all)), ...all]);
  if (rules.length > RULES)
    throw noRoom(
      name,
      `it would need ${rules.length} rules, more than ${RULES}`,
      "Name fewer paths in its sandbox.",
    );
  return { rules, data: folder, temp, nothing, cwd: (await real(cwd)) ?? cwd, network: room.network };
}

/** Variables that lead to sockets of the user: the agent of SSH, the session's bus, the display, containers. */
const LEADING = [
  ...["SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"],
  ...["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DOCKER_HOST", "TMUX", "STY", "VSCODE_IPC_HOOK_CLI"],
];

/**
 * The environment in the room. Programs keep caches and state in the room's own folder (XDG Base Directory Specification,
 * npm, uv). What the entry itself says of a variable counts.
 */
export function roomEnvironment(
  env: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
  { data, temp }: Pick<Plan, "data" | "temp">,
): Record<string, string> {
  const given = {
    TMPDIR: temp,
    XDG_CACHE_HOME: join(data, "cache"),
    XDG_DATA_HOME: join(data, "share"),
    XDG_STATE_HOME: join(data, "state"),
    npm_config_cache: join(data, "npm"),
  };
  const isOwn = (name: string): boolean => Object.hasOwn(own, name);
  const kept = Object.entries(env).filter(([name]) => isOwn(name) || !LEADING.includes(name));
  const added = Object.entries(given).filter(([name]) => !isOwn(name));
  return { ...Object.fromEntries(kept), ...Object.fromEntries(added) };
}
