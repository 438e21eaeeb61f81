/**
 * The YAML between the first two lines `---` of a SKILL.md (Agent Skills, "SKILL.md format"), read as JSON. The parser is
 * loaded with the first skill, also in the thread for long messages. Anchors and merges are refused: no skill needs them, and
 * they make a short text a large value.
 */
import { isObject } from "../../../src/shared/protocol/values.ts";
import { isWithin } from "../../shared/json.ts";

const CHARS = 64 * 1024;
const BOUNDS = { depth: 16, nodes: 2_000, chars: CHARS };
const FENCED = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)(?:^|\n)---[ \t]*(?:\r?\n|$)/;

/** The frontmatter, or what is wrong with it, worded to follow a colon. */
export async function readFrontmatter(
  text: string,
): Promise<{ value: Record<string, unknown> } | { problem: string }> {
  // What stands behind the limit must not look like the end of a line.
  const start = text.length > CHARS ? `${text.slice(0, CHARS)}…` : text;
  const [, yaml] = FENCED.exec(start) ?? [];
  if (yaml === undefined) return { problem: "it has no frontmatter" };
  const { CORE_SCHEMA, load } = await import("./yaml.ts");
  let value: unknown;
  try {
    value = load(yaml, { schema: CORE_SCHEMA, maxAliases: 0 });
  } catch {
    return { problem: "its frontmatter is not YAML that a skill can have" };
  }
  if (!isObject(value) || Array.isArray(value)) return { problem: "its frontmatter is no list of fields" };
  return isWithin(value, BOUNDS) ? { value } : { problem: "its frontmatter is too long" };
}
