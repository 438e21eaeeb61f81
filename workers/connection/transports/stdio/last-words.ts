/** What of a server's output a person reads when it fails: the last lines that say why. Pure. */

const LINES = 3;
const LINE_CHARS = 300;
/** A frame of a stack, a brace or a ruler alone, the fields of a system error, and what Node and npm write below all, with npm's advertising. */
const SAYS_NOTHING =
  /^\s*(?:at .*|File ".*", line \d+.*|[\s{}[\](),;^~=*_-]*|(?:errno|code|syscall|hostname|address|port|path|spawnargs|requireStack): .*|Node\.js v[\d.]+|npm notice.*|npm (?:error|ERR!) A complete log .*|npm (?:error|ERR!) +\S+-debug-0\.log)$/;

const shortened = (line: string): string =>
  line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS)}…` : line;

/** A sentence may follow: the text ends as one does. */
const ended = (text: string): string => (/[.!?\u2026]$/.test(text) ? text : `${text}.`);

/** `isAll`: nothing was left out. */
export function lastWords(output: string): { text: string; isAll: boolean } {
  const lines = output
    .split(/\r?\n|\r/)
    .map((line) => line.trimEnd())
    .filter((line) => line !== "");
  const telling = lines.filter((line) => !SAYS_NOTHING.test(line));
  const shown = (telling.length > 0 ? telling : lines).slice(-LINES);
  return {
    text: shown.length === 0 ? "" : ended(shown.map(shortened).join("\n")),
    isAll: shown.length === lines.length && shown.every((line) => line.length <= LINE_CHARS),
  };
}

/** `It wrote:` and the last words, behind a sentence. */
export function withLastWords(sentence: string, output: string): string {
  const { text, isAll } = lastWords(output);
  if (text === "") return sentence;
  return `${sentence} ${isAll ? "It wrote" : "Its last words (mcp-threads.log has all)"}:\n${text}`;
}
