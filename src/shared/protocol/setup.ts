/**
 * What a person asks of the worker to set servers up: look at an entry, try it, write it, remove it, and take over what
 * other programs have configured. Types only. Asked by `/mcp add`, `/mcp import`, `/mcp remove` and the command line.
 * Every text here is cleaned and bounded by the worker, and holds no secret.
 */
import type { JsonValue, WireError } from "./errors.ts";
import type { ConfigProblem, ConfigSeverity, TransportKind } from "./status.ts";

/** An entry of `mcpServers`, as it stands in a file. */
export type ServerEntry = { [key: string]: JsonValue };

/** A server that a person wants to have. */
export interface ProposedServer {
  name: string;
  entry: ServerEntry;
  /** For the project's `.pi/mcp.json`; otherwise for the user's own mcp.json. */
  project: boolean;
}

/** What is wrong with an entry. */
export interface EntryMistake {
  severity: ConfigSeverity;
  /** Path of the key below the entry, for example `env.TOKEN`; empty for the entry itself. */
  key: string;
  message: string;
  remedy: string;
}

/** A file that has a server of a name. */
export interface DefinedIn {
  file: string;
  /** Whose file it is. `import`: another program's; `extension`: `file` is the path of the extension. */
  by: "user" | "project" | "import" | "extension";
}

export interface ServerPreview {
  /**
   * All that would run or be sent, in one line of at most `LIMITS.consentChars`; values that may be secret are masked.
   * Absent: the entry has an error, or the line would be longer.
   */
  line?: string;
  transport?: TransportKind;
  /** The file that would be written. */
  file: string;
  /** Errors come first. With an error the server can be neither tried nor added. */
  mistakes: EntryMistake[];
  /** Where a server of that name is configured already: the one that counts. */
  exists?: DefinedIn;
}

/** How the trial of a server ended. It never rejects because of the server. */
export type TriedServer =
  | {
      outcome: "connected";
      toolCount: number;
      /** The first names of its tools, at most `LIMITS.triedToolNames`. */
      tools: string[];
      transport: TransportKind;
      /** Revision of MCP, for example `2026-07-28`; empty if it is not known. */
      protocol: string;
      tookMs: number;
    }
  /** The server answers and wants a sign-in, which is possible once it is added. */
  | { outcome: "needs-sign-in"; tookMs: number }
  | { outcome: "failed"; error: WireError; tookMs: number };

export interface AddedServer {
  file: string;
  /** Why the server does not run although it is written, for example because a later file replaces it. */
  but?: string;
}

export interface RemovedServer {
  file: string;
  /** Other files of ours, from which what they changed of the server was removed too. */
  also?: string[];
  /** The server of that name that counts now. */
  still?: DefinedIn;
}

/** A server in a file of another program. */
export interface FoundServer {
  name: string;
  /** As in `ServerPreview`; of a project's file nothing is masked. */
  line?: string;
  /** Why the server cannot be copied; it has no `line` or no `id` then. */
  unusable?: string;
  /** Names what was found and shown: `takeImports` copies nothing else. */
  id?: string;
  /** `new`: no server of that name is configured; `same`: that very server is; `other`: another server is. */
  standing: "new" | "same" | "other";
  /** The other program has it disabled, and so is the copy. */
  disabled?: true;
}

export interface FoundFile {
  file: string;
  /** The file belongs to the project, and others may have written it. */
  ofProject: boolean;
  servers: FoundServer[];
  /** Servers beyond the limits, which are not in the list. */
  more: number;
}

export interface FoundHost {
  /** As `imports` of mcp.json names the program. */
  host: string;
  /** For people, for example `Claude Code`. */
  title: string;
  /** Whether `imports` of a file names the program already. */
  imported: boolean;
  /** Files that exist. */
  files: FoundFile[];
}

export interface FoundImports {
  /** Programs of which at least one file exists. */
  hosts: FoundHost[];
  /** Mistakes of these files. */
  problems: ConfigProblem[];
  /** The file that `takeImports` would write. */
  file: string;
}

export type TakeImports =
  /** Names the programs in `imports` of the user's mcp.json: their files are read at each start and followed. */
  | { how: "imports"; hosts: string[] }
  /** Copies entries into the user's mcp.json, in our own keys. `ids`: of `FoundServer`. */
  | { how: "copy"; ids: string[]; replace?: boolean };

export interface TakenImports {
  file: string;
  /** Names of the programs or servers that the file has now. */
  taken: string[];
  /** What was not taken, each with the reason. */
  left: { name: string; reason: string }[];
}

/** Requests; all that write keep comments and formatting, and fail with `bad_config` if the file cannot be changed. */
export interface SetupRequests {
  /** Starts nothing and reads no secret. Fails with `bad_config` if the project is not trusted. */
  previewServer: { params: ProposedServer; value: ServerPreview };
  /**
   * Connects to the server apart from the session's servers, lists its tools and ends it. Answers within
   * `LIMITS.tryMs`. Aborting the request ends the server first. One trial runs at a time. Fails with `bad_config` if
   * the entry has an error, or another trial runs.
   */
  tryServer: { params: ProposedServer; value: TriedServer };
  /** Fails with `bad_config` if the entry has an error, or the name exists and `replace` is not set. */
  addServer: { params: ProposedServer & { replace?: boolean }; value: AddedServer };
  /**
   * Takes the server out of `file`, if it is one of ours that names the server, else out of the user's own file before one
   * of the project. Fails with `unknown_server`, or with `bad_config` if another program or an extension defines it.
   */
  removeServer: { params: { server: string; file?: string }; value: RemovedServer };
  /** Reads the files of the programs whose configuration is known. */
  findImports: { params: Record<string, never>; value: FoundImports };
  takeImports: { params: TakeImports; value: TakenImports };
}
