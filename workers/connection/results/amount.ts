/** A number of things in a text for people and models, such as `1,234 lines` or `1 line`. Pure. */
export const amount = (count: number, noun: string): string =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
