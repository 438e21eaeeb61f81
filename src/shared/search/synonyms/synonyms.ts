/**
 * Owns the general synonym rules and their notation. The rules are words of everyday software, office work, business and
 * data. No rule may name a server or a tool; a few name file types or well-known kinds of things ("docx", "bitcoin").
 * `a b c`    each word may stand for each other one
 * `a b > c`  a query for a or b also finds c, but not the other way round: the special word finds the general one
 * `|` or the end of a line separates rules. weights.ts says what a match by a rule earns. Called only by
 * build/relations.ts: the index stores the relations that its catalog needs, so main must never load these lists. To add
 * a rule: a line in one of the lists of this folder.
 */
import { NOUNS } from "./nouns.ts";
import { TRANSLATIONS } from "./translations.ts";

/** Spellings, abbreviations and file types of the same thing. */
const SAME = `
repository repo | database db | directory folder dir | document doc | documentation doc docs | configuration config
organization organisation org | application app | specification spec | parameter param | argument arg | information info | environment env
development dev | production prod | authentication auth | administrator admin | kubernetes k8s | image picture photo | delete remove
summarize summarise | visualize visualise | analyze analyse | optimize optimise | authorize authorise | calculate compute | find search
fetch retrieve get | create make | edit modify | update modify | pr > pull request | mr > merge request | docx > word | xlsx > excel
pptx > powerpoint | powerpoint ppt pptx | email mail | message msg | statistic stats stat | dependency dep deps | reference ref
command cmd | temporary temp | maximum max | minimum min | average avg | number num | javascript js | typescript ts | python py
markdown md | vm > virtual machine | ip > address | url link | website site | webpage page | movie film | flight airline | stock equity
cryptocurrency crypto | bitcoin btc | ethereum eth | employee staff worker | customer client | company firm | color colour
license licence | catalog catalogue | cancel abort | ticket issue | invoice bill | meeting appointment | dm > message | sms > message text
screenshot capture`;

export type SynonymKind = "same" | "noun" | "translation";
export type SynonymRule = {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly kind: SynonymKind;
};

export function synonymRules(): SynonymRule[] {
  return [...parse(SAME, "same"), ...parse(NOUNS, "noun"), ...translations()];
}

function parse(rules: string, kind: SynonymKind): SynonymRule[] {
  return rules
    .trim()
    .split(/[|\n]/u)
    .map((rule) => {
      const [left = "", right = left] = rule.split(">");
      return { from: words(left), to: words(right), kind };
    });
}

/** Rules of the translations: a foreign word and its English words stand for each other, but not the English words alone. */
function translations(): SynonymRule[] {
  return parse(TRANSLATIONS, "translation").flatMap(({ from: [word = "", ...english], kind }) => [
    { from: [word], to: english, kind },
    { from: english, to: [word], kind },
  ]);
}

function words(text: string): string[] {
  return text.trim().split(/\s+/u);
}
