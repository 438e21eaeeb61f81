/** The byte-order mark that some editors put before a text. Pure. */
export const BOM = "\uFEFF";

export const withoutBom = (text: string): string => (text.startsWith(BOM) ? text.slice(BOM.length) : text);
