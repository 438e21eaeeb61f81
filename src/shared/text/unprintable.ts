/**
 * Owns the characters of foreign text that no terminal and no model may get, and the functions that remove them.
 * Servers write names, descriptions and errors. A terminal acts on some of their characters, and a model reads others
 * that no person sees. Must be the only such set: other files import from here. Pure.
 */

/**
 * CSI and OSC sequences, and the other escapes of two characters. All repetitions are bounded: V8 gives up with an error
 * on one over tens of millions of characters. A sequence that takes a text (OSC and its like) counts
 * only if it ends on the same line: otherwise a server could hide text from the person that the model still reads.
 */
export const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds control characters.
  /\u001b(?:\[[0-?]{0,256}[ -/]{0,16}[@-~]|[\]PX^_][^\u0007\u001b\n]{0,2048}(?:\u0007|\u001b\\)|[ -/]{0,16}[0-~])/g;

/** All C0 and C1 controls except tab and newline, and the marks of interlinear notes. */
export const CONTROLS = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\ufff9-\\ufffb";

/** Line ends that only some programs know: the line separator and the paragraph separator. */
export const FOREIGN_LINE_ENDS = "\\u2028\\u2029";
const LINE_ENDS = new RegExp(`\\r\\n|[${FOREIGN_LINE_ENDS}]`, "g");

/** Marks that change the order of letters, some of them beyond their own line. */
export const DIRECTIONS = "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";

const REMOVED = new RegExp(`[${CONTROLS}${DIRECTIONS}]`, "g");
const UNPRINTABLE = new RegExp(`[${CONTROLS}${DIRECTIONS}${FOREIGN_LINE_ENDS}]`, "g");

/** Characters without a shape, such as the tags U+E0000 to U+E007F: a person sees nothing, but a model reads them. */
const INVISIBLE =
  /[\u034f\u00ad\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufff8\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/gu;

/** Joiners and variation selectors have no shape either, but scripts and emoji need one or two behind a character. */
const JOINERS = "\\u180b-\\u180d\\u180f\\u200c\\u200d\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}";
/** Joiners and selectors that only carry hidden text: three in a row, or any behind ASCII except keycaps of `0` to `9`, `#`, `*`. */
const HIDDEN_JOINERS = new RegExp(
  `[${JOINERS}]{3,1000}|(?<=[${JOINERS}]{3}|^|[\\0-"$-)+-/:-\\x7f])[${JOINERS}]{1,1000}`,
  "gmu",
);

const SELECTORS = "\\u180b-\\u180d\\u180f\\ufe00-\\ufe0f";
const OF_IDEOGRAPHS = "\\u{e0100}-\\u{e01ef}";
/** They say how hieroglyphs are joined (Unicode 17, chapter 11.4): few in a row, before or behind one. */
const OF_GLYPHS = "[\\u{13430}-\\u{1343f}]";
const MAYBE_SELECTED = new RegExp(`[${SELECTORS}${OF_IDEOGRAPHS}]|${OF_GLYPHS}`, "u");
/**
 * What has a second shape (StandardizedVariants.txt and emoji-variation-sequences.txt of Unicode 17): signs, emoji, ideographs,
 * some scripts, quotation marks and punctuation of East Asia, script letters of mathematics.
 */
const VARIED =
  "\\p{S}\\p{Emoji}\\p{Ideo}\\p{sc=Mymr}\\p{sc=Phag}\\p{sc=Mani}\\p{sc=Mong}\\p{sc=Egyp}\\u2018-\\u201d\\u2100-\\u214f\\u3001\\u3002\\uff01-\\uff1f\\u{1d400}-\\u{1d7ff}";
/** Variation selectors behind anything else, or behind another one: two of them hide two bytes. */
let strays: RegExp | undefined;

/** What matches the characters of a text that nobody sees, each to be applied after the one before. */
export function hiddenIn(text: string): RegExp[] {
  if (!MAYBE_SELECTED.test(text)) return [INVISIBLE, HIDDEN_JOINERS];
  // The engine takes milliseconds for the sets, and most texts have no selector.
  strays ??= new RegExp(
    `[${SELECTORS}](?<![${VARIED}].)|[${OF_IDEOGRAPHS}](?<!\\p{Ideo}.)|${OF_GLYPHS}{5,999}|(?<!\\p{sc=Egyp})${OF_GLYPHS}{1,4}(?!\\p{sc=Egyp})`,
    "gsu",
  );
  return [INVISIBLE, HIDDEN_JOINERS, strays];
}

/** Marks that take a cell: base letters have them behind or before them. */
const SPACING = "\\p{Mc}\\u065f\\u1033-\\u1035\\u103a\\u103d\\u103e";
/** What joins the letter before it to one cluster. */
const JOINING = "\\p{M}\\p{Grapheme_Extend}\\p{Emoji_Modifier}\\u200d";
/** Thai and Lao AM, which Pi draws as two characters. */
const AM = "\\u0e33\\u0eb3";
/** Pi takes signs of Markdown out of a message before it measures: what stood apart is then one cluster. */
const SIGNS = "!-\\/:-@\\[-`\\{-~";
/** The sign that Unicode gives a mark to stand on. */
const DOTTED = "\u25cc";
/** No emoji and no letter of any language is a cluster of more characters. */
const CLUSTER_CHARS = 16;
/** Characters with marks in a row that are looked at at once: V8 gives up with an error on millions. */
const RUN_CHARS = 2_000;

/** Where marks and Thai are. Most texts have none of these, and the engine takes milliseconds for the sets below. */
const MAYBE_MARKED =
  /[\u0300-\u036f\u0483-\u0489]|[\u0591-\u1fff]|\u200c|\u200d|[\u20d0-\u20ff]|[\u2cef-\u2dff]|[\u302a-\u302f]|[\u3099-\u309a]|[\ua66f-\uabff]|[\ud800-\udfff]|[\ufb1e-\ufe2f]|[\uff9e-\uff9f]/;

interface Marks {
  lone: RegExp;
  many: RegExp;
  signs: RegExp;
  segmenter: Intl.Segmenter;
}
let made: Marks | undefined;
const marks = (): Marks => {
  made ??= {
    lone: new RegExp(
      `(?<=^|[[\\p{Z}\\p{C}\\p{P}\\s${SIGNS}]--[${JOINING}]])(?=[${JOINING}]*[${SPACING}])|` +
        `(?=[${AM}])(?<=\\p{RI}[${JOINING}${SIGNS}]*)`,
      "gmv",
    ),
    many: new RegExp(
      `(?:[${SIGNS}]{0,9}(?:[^\\s${JOINING}${AM}${SIGNS}][${SIGNS}]{0,9})?[${JOINING}${AM}]){${CLUSTER_CHARS / 2},${RUN_CHARS}}`,
      "gu",
    ),
    signs: new RegExp(`[${SIGNS}]`, "g"),
    segmenter: new Intl.Segmenter(undefined, { granularity: "grapheme" }),
  };
  return made;
};

/**
 * The text as Pi's own components may draw it. A mark without a letter, and a cluster without end, gets a dotted circle:
 * Pi measures such a mark otherwise behind the margin of a notice, and no line takes such a cluster. Either ends Pi, which
 * refuses a line that is too wide.
 */
export function withBases(text: string): string {
  if (!MAYBE_MARKED.test(text)) return text;
  const { lone, many, signs, segmenter } = marks();
  const isEndless = (run: string): boolean =>
    run.length >= RUN_CHARS ||
    Array.from(segmenter.segment(run.replace(signs, ""))).some(
      ({ segment }) => [...segment].length > CLUSTER_CHARS,
    );
  // What follows a run that was too long to be looked at as a whole stands on a circle of its own.
  const divided = (run: string): string =>
    [...run].map((char, at) => (at > 0 && at % (CLUSTER_CHARS - 1) === 0 ? DOTTED + char : char)).join("") +
    (run.length >= RUN_CHARS ? DOTTED : "");
  return text.replace(lone, DOTTED).replace(many, (run) => (isEndless(run) ? divided(run) : run));
}

/** Matches most texts: no character in them can need a change. */
export const PLAIN = /^[ -~\n\t]*$/;

/** The text without escape sequences. */
export const withoutEscapes = (text: string): string => text.replace(ESCAPES, "");

/** Foreign text of one or several lines, without characters that a terminal acts on. Tabs and newlines stay. */
export const plainLines = (text: string): string =>
  PLAIN.test(text) ? text : withoutEscapes(text).replace(LINE_ENDS, "\n").replace(REMOVED, "").toWellFormed();

/** Replaces each character that a terminal acts on; tabs and newlines stay. */
export const replaceUnprintable = (text: string, replacement: (char: string) => string): string =>
  PLAIN.test(text) ? text : text.replace(UNPRINTABLE, replacement);

/**
 * Replaces these and each UTF-16 unit of what nobody sees. For the log, which shows such characters by their codes instead
 * of removing them, and which a model may read, too.
 */
export function replaceHidden(text: string, replacement: (unit: string) => string): string {
  if (PLAIN.test(text)) return text;
  const each = (found: string): string => found.split("").map(replacement).join("");
  return hiddenIn(text).reduce(
    (left, hidden) => left.replace(hidden, each),
    replaceUnprintable(text, replacement),
  );
}

/** Foreign text of one or several lines as a model may read it, with no hidden characters. */
export function cleanText(text: string): string {
  if (PLAIN.test(text)) return text;
  return hiddenIn(text).reduce((left, hidden) => left.replace(hidden, ""), plainLines(text));
}

/** At most so many characters; the last one is an ellipsis if any are left out. */
export const cut = (text: string, chars: number): string =>
  text.length > chars ? `${withoutHalfAtEnd(text.slice(0, chars - 1))}…` : text;

/** Controls that some programs treat as a line end. */
const RARE_LINE_ENDS = /[\r\v\f\u0085]/g;

/** One word of ASCII, as most names are: such a line needs no change. */
const PLAIN_WORD = /^[!-~]+$/;

/** Foreign text in one line of at most `chars` characters, so that it cannot pass for another line. */
export function oneLine(text: string, chars: number): string {
  if (text.length <= chars && PLAIN_WORD.test(text)) return text;
  // A long text is cut before it is searched. Removed characters may then make the line shorter than `chars`.
  const start = text.slice(0, 4 * chars);
  const line = withBases(cleanText(start.replace(RARE_LINE_ENDS, " ")).replace(/\s+/g, " ").trim());
  return start.length < text.length && line.length <= chars ? `${line}…` : cut(line, chars);
}

const SHOWN_NAME_CHARS = 64;
const USUAL_NAME = /^[\w./-]{1,64}$/;

/** A function of its own, since the engine parses the expression when it first compiles the function around it. */
const identifier = (text: string): string => text.replace(/[^\p{L}\p{N}\p{M}_./-]+/gu, "_");

/**
 * The name of a server or a tool for a list of names. Other characters than those of identifiers become `_`, so that a
 * name can add neither an entry nor a sentence to the list.
 */
export function shownName(name: string): string {
  if (USUAL_NAME.test(name)) return name;
  return cut(identifier(cleanText(name.slice(0, 4 * SHOWN_NAME_CHARS))), SHOWN_NAME_CHARS) || "_";
}

/** Whether a code unit is the first half. */
export const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

/** Whether a code unit is the second half. */
export const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** The text without a first half at its end: a cut may have taken the second half away. */
export const withoutHalfAtEnd = (text: string): string =>
  isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;

const SENTENCE_CHARS = 160;

/** The first sentence of a description, in one line. */
export function firstSentence(description: string): string {
  // The text behind the longest sentence that is shown changes nothing.
  const start = description.slice(0, 4 * SENTENCE_CHARS).trimStart();
  const line = /^[^\r\n\u2028\u2029]*/.exec(start)?.[0] ?? "";
  const sentence = /^.*?[.!?\u3002](?=\s|$)/u.exec(line.slice(0, SENTENCE_CHARS + 2))?.[0] ?? line;
  return cut(oneLine(sentence, SENTENCE_CHARS), SENTENCE_CHARS);
}
