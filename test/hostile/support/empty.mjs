// An extension that does nothing; bare Pi gets it in place of the real one.
export default function empty() {}
