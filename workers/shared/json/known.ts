/** The object without its keys that are undefined, so that it holds what JSON would hold. */
export type Known<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

export const known = <T extends object>(values: T): Known<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Known<T>;
