/**
 * What the two threads say to each other about a question of a server to the user (MCP: elicitation). The worker has read,
 * bounded and cleaned all texts. Main knows a field and a choice by its position, never by its name in the protocol.
 * Types only.
 */

export interface Choice {
  title: string;
}

export type TextFormat = "email" | "uri" | "date" | "date-time";

/** What one field takes. `default`: the value that holds until the user gives another one. */
export type FieldKind =
  | { kind: "text"; format?: TextFormat; minLength?: number; maxLength?: number; default?: string }
  | { kind: "number"; integer: boolean; minimum?: number; maximum?: number; default?: number }
  | { kind: "boolean"; default?: boolean }
  /** `default`: a position in `choices`. */
  | { kind: "choice"; choices: Choice[]; default?: number }
  | { kind: "choices"; choices: Choice[]; minItems?: number; maxItems?: number; default?: number[] };

export type Field = FieldKind & { title: string; description?: string; required: boolean };

/**
 * The value of a field: the typed text (also of a number), a boolean, the position of a choice, or the positions of
 * several. Undefined: the field is left out.
 */
export type FieldValue = string | boolean | number | number[] | undefined;

export type AskForm = { kind: "form"; message: string; fields: Field[] };

/** `host`: as it is looked up, so a name with foreign letters is in Punycode. */
export type AskUrl = {
  kind: "url";
  message: string;
  url: string;
  host: string;
  /** The host's name is written in Punycode: its real letters may look like those of another name. */
  punycode: boolean;
  /** The address is not encrypted. */
  plain: boolean;
};

export type Ask = AskForm | AskUrl;

/** The user's answer. `values`: by the position of the fields. `open`: a browser is to open the address. */
export type AskAnswer =
  | { action: "decline" | "cancel" }
  | { action: "accept"; values: FieldValue[] }
  | { action: "accept"; open: boolean };
