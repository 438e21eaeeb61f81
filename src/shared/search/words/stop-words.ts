/**
 * Owns the words without a meaning in a search for tools: articles, pronouns, prepositions, question words, and the
 * phrases around a request ("please show me how to ..."). Verbs that name an operation (get, list, show, find) are never
 * stop words. They are never indexed (build/scan.ts), and searched only if a query has no other words (ranked/query.ts).
 */
const words = `
a an the this that these those it its they them their he she his her we us our you your i me my mine
is are was were be been being am do does did done doing has have had having can could will would shall should may might must
and or but nor so if then than else when while where which who whom whose what why how
of in on at by for from to into onto with without within about as up out off over under between among per via through
there here all any some each every both few more most other such own same only just also too very not no yes
please want need like would let lets help tell know wish able try using use used uses
s t d ll ve re m etc eg ie vs e.g i.e
exist existing currently given based specific specified certain various several
mcp tool tools`;

const stopWords: ReadonlySet<string> = new Set(words.split(/\s+/u).filter(Boolean));

export function isStopWord(term: string): boolean {
  return stopWords.has(term);
}
