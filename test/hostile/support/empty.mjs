// Nothing: what bare Pi gets in place of the extension.
export default function empty() {}
