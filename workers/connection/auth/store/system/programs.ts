/**
 * How the program of each system is asked for a text in the system's credential store, and what its answers mean. A secret
 * goes to a program by stdin and comes by stdout, never in an argument: other users read arguments. No word that a program
 * prints is ever shown, because it may hold a part of a secret. Pure.
 */
import { systemProgram } from "../../../../../src/shared/process/strays.ts";
import type { Env } from "../../../../shared/programs/find-program.ts";

/** Under this name all texts lie in the store. */
export const SERVICE = "pi-mcp-threads";

/** `item`: hexadecimal digits, dots and digits. `label`: what the store shows to its user, of `[\w.: -]` alone. */
export type Question =
  | { do: "read"; item: string }
  | { do: "write"; item: string; label: string; text: string }
  | { do: "remove"; item: string };

/** One run of the program. */
export interface Run {
  args: readonly string[];
  stdin: string;
}

export interface Ended {
  /** Undefined: a signal ended it. */
  code: number | undefined;
  stdout: string;
  stderr: string;
}

/** `unsure`: the program does not say whether it did that. `what`: why not, behind "the store cannot be used: ". */
export type Answer =
  | { kind: "text"; text: string }
  | { kind: "done" }
  | { kind: "missing" }
  | { kind: "unsure" }
  | { kind: "failed"; what: string };

export interface Dialect {
  /** A name is looked for on the search path. */
  program: string;
  /** Why nothing can be stored if the program is missing. */
  absent: string;
  /** Characters of one text, of the alphabet of base64url. */
  chars: number;
  run(question: Question): Run;
  answer(question: Question, ended: Ended): Answer;
}

export const LOCKED = "it is locked";
const DENIED = "the access to it was denied";
export const NO_BUS = "this session has no D-Bus, as over SSH or in a container";
export const NO_SERVICE =
  "no program offers the Secret Service here, such as gnome-keyring, KWallet or KeePassXC";

const failed = (what: string): Answer => ({ kind: "failed", what });

const endedWith = (program: string, { code }: Ended): Answer =>
  failed(code === undefined ? `${program} was ended by a signal` : `${program} ended with code ${code}`);

/** What libsecret and GDBus say in the language "C". */
const SAID: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/locked (?:collection|object)|prompt(?: was)? dismissed/i, LOCKED],
  [
    /autolaunch D-Bus|DBUS_SESSION_BUS_ADDRESS|Could not connect|Error (?:connecting|spawning)|given address/i,
    NO_BUS,
  ],
  [/org\.freedesktop\.secrets|ServiceUnknown|Unit .* not found/i, NO_SERVICE],
  [/Object does not exist at path/i, "it has no keyring to write to, or the keyring was not unlocked"],
  [/AccessDenied|not authori[sz]ed|permission/i, DENIED],
];

/**
 * `secret-tool` of libsecret. `lookup` and `clear` end with code 1 and no word both for a text that is missing and for one that
 * is locked; `search` tells them apart, and asks to unlock. `store` reads at most 8,191 bytes: it cuts a longer text, says so
 * and ends with code 0 (tool/secret-tool.c).
 */
const SECRET_TOOL: Dialect = {
  program: "secret-tool",
  absent:
    "secret-tool is not installed: the package is libsecret-tools on Debian and Ubuntu, libsecret on others",
  chars: 8_000,
  run: (question) => {
    const which = ["service", SERVICE, "item", question.item];
    if (question.do === "read") return { args: ["search", "--unlock", ...which], stdin: "" };
    if (question.do === "remove") return { args: ["clear", ...which], stdin: "" };
    return { args: ["store", `--label=${question.label}`, ...which], stdin: question.text };
  },
  answer: (question, ended) => {
    const { code, stdout, stderr } = ended;
    const said = SAID.find(([pattern]) => pattern.test(stderr))?.[1];
    if (question.do === "read" && code === 0) {
      const text = /^secret = (.*)$/m.exec(stdout)?.[1];
      if (text !== undefined) return { kind: "text", text };
      if (stdout.trim() === "" && said === undefined) return { kind: "missing" };
      return failed(said ?? LOCKED);
    }
    if (said !== undefined) return failed(said);
    if (code === 0) return { kind: "done" };
    // Version 0.20 says nothing at all for a text that is locked or missing.
    if (question.do === "remove" && code === 1) return { kind: "unsure" };
    return endedWith("secret-tool", ended);
  },
};

/**
 * The exit code is the lowest byte of the system's error (SecBase.h): -25300 errSecItemNotFound, -25308
 * errSecInteractionNotAllowed, -25293 errSecAuthFailed, -128 errSecUserCanceled, -25307 errSecNoDefaultKeychain.
 */
const SECURITY_CODES: Readonly<Record<number, string>> = {
  36: LOCKED,
  37: "there is no keychain",
  51: DENIED,
  128: DENIED,
};
const SECURITY_MISSING = 44;

/**
 * `security` of macOS. With `-i` it reads commands from stdin, at most 4,095 bytes of a line: what is longer would run as
 * another command (SecurityTool/readline.c). It ends with the code of the last command.
 */
const SECURITY: Dialect = {
  program: "/usr/bin/security",
  absent: "/usr/bin/security is missing",
  chars: 3_000,
  run: (question) => {
    const which = ["-s", SERVICE, "-a", question.item];
    if (question.do === "read") return { args: ["find-generic-password", ...which, "-w"], stdin: "" };
    if (question.do === "remove") return { args: ["delete-generic-password", ...which], stdin: "" };
    const { label, text } = question;
    const line = ["add-generic-password", "-U", ...which, "-l", `"${label}"`, "-w", text].join(" ");
    return { args: ["-i"], stdin: `${line}\n` };
  },
  answer: (question, ended) => {
    const { code, stdout } = ended;
    if (code === 0) return question.do === "read" ? { kind: "text", text: stdout.trim() } : { kind: "done" };
    if (code === SECURITY_MISSING && question.do !== "write") return { kind: "missing" };
    const what = SECURITY_CODES[code ?? 0];
    return what === undefined ? endedWith("security", ended) : failed(what);
  },
};

/**
 * The functions of wincred.h: CredReadW, CredWriteW and CredDeleteW for a generic credential (type 1) that stays on this
 * machine (persist 2). Stdin has the question as four lines; the first word of stdout is the answer.
 */
const SCRIPT = `
$ErrorActionPreference = 'Stop'
if ($ExecutionContext.SessionState.LanguageMode -ne 'FullLanguage') { [Console]::Out.WriteLine('language'); exit 0 }
Add-Type -TypeDefinition @'
using System;
using System.Runtime.InteropServices;
public static class PiCred {
  [StructLayout(LayoutKind.Sequential, CharSet = CharSet.Unicode)]
  public struct Credential {
    public uint Flags; public uint Type; public string TargetName; public string Comment;
    public System.Runtime.InteropServices.ComTypes.FILETIME LastWritten;
    public uint BlobSize; public IntPtr Blob; public uint Persist; public uint AttributeCount; public IntPtr Attributes;
    public string TargetAlias; public string UserName;
  }
  [DllImport("advapi32.dll", EntryPoint = "CredReadW", CharSet = CharSet.Unicode, SetLastError = true)]
  static extern bool CredRead(string target, uint type, uint flags, out IntPtr found);
  [DllImport("advapi32.dll", EntryPoint = "CredWriteW", CharSet = CharSet.Unicode, SetLastError = true)]
  static extern bool CredWrite(ref Credential credential, uint flags);
  [DllImport("advapi32.dll", EntryPoint = "CredDeleteW", CharSet = CharSet.Unicode, SetLastError = true)]
  static extern bool CredDelete(string target, uint type, uint flags);
  [DllImport("advapi32.dll")] static extern void CredFree(IntPtr found);
  static string Failed() { return "error " + Marshal.GetLastWin32Error(); }
  public static string Read(string target) {
    IntPtr found;
    if (!CredRead(target, 1, 0, out found)) return Failed();
    try {
      Credential credential = (Credential)Marshal.PtrToStructure(found, typeof(Credential));
      byte[] bytes = new byte[credential.BlobSize];
      Marshal.Copy(credential.Blob, bytes, 0, bytes.Length);
      return "text " + System.Text.Encoding.ASCII.GetString(bytes);
    } finally { CredFree(found); }
  }
  public static string Write(string target, string label, string text) {
    byte[] bytes = System.Text.Encoding.ASCII.GetBytes(text);
    Credential credential = new Credential();
    credential.Type = 1; credential.Persist = 2; credential.TargetName = target; credential.UserName = label;
    credential.BlobSize = (uint)bytes.Length; credential.Blob = Marshal.AllocHGlobal(bytes.Length);
    try {
      Marshal.Copy(bytes, 0, credential.Blob, bytes.Length);
      return CredWrite(ref credential, 0) ? "done" : Failed();
    } finally { Marshal.FreeHGlobal(credential.Blob); }
  }
  public static string Remove(string target) { return CredDelete(target, 1, 0) ? "done" : Failed(); }
}
'@
$asked = [Console]::In.ReadLine(); $item = [Console]::In.ReadLine(); $label = [Console]::In.ReadLine()
$text = [Console]::In.ReadLine()
if ($asked -eq 'read') { $said = [PiCred]::Read($item) }
elseif ($asked -eq 'write') { $said = [PiCred]::Write($item, $label, $text) }
else { $said = [PiCred]::Remove($item) }
[Console]::Out.WriteLine($said)
`;

/** Error codes of winerror.h: ERROR_NOT_FOUND, ERROR_NO_SUCH_LOGON_SESSION, ERROR_ACCESS_DENIED. */
const WINDOWS_MISSING = "1168";
const WINDOWS_CODES: Readonly<Record<string, string>> = {
  "1312": "this logon has no Credential Manager, as over SSH",
  "5": DENIED,
};

/** PowerShell of Windows. A credential has at most 2,560 bytes (CRED_MAX_CREDENTIAL_BLOB_SIZE of wincred.h). */
const powershell = (env: Env): Dialect => ({
  program: systemProgram("WindowsPowerShell\\v1.0\\powershell.exe", env),
  absent: "PowerShell of Windows is missing",
  chars: 2_500,
  run: (question) => {
    const code = Buffer.from(SCRIPT, "utf16le").toString("base64");
    const { label, text } = question.do === "write" ? question : { label: "", text: "" };
    return {
      args: ["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand", code],
      stdin: `${[question.do, `${SERVICE}:${question.item}`, label, text].join("\n")}\n`,
    };
  },
  answer: (question, ended) => {
    const [, word, rest = ""] = /^(\w+)(?: (\S*))?\s*$/.exec(ended.stdout) ?? [];
    if (word === "done" && question.do !== "read") return { kind: "done" };
    if (word === "text" && question.do === "read") return { kind: "text", text: rest };
    if (word === "language") return failed("the rules of this machine keep PowerShell from calling it");
    if (word !== "error") return endedWith("PowerShell", ended);
    if (rest === WINDOWS_MISSING && question.do !== "write") return { kind: "missing" };
    return failed(WINDOWS_CODES[rest] ?? `Windows answers error ${rest}`);
  },
});

/** Undefined: no store is known for this system. */
export function dialectOf(platform: NodeJS.Platform, env: Env): Dialect | undefined {
  if (platform === "darwin") return SECURITY;
  if (platform === "win32") return powershell(env);
  return ["linux", "freebsd", "openbsd"].includes(platform) ? SECRET_TOOL : undefined;
}
