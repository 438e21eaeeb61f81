/** Loads what the factory does not need. Once: whoever asks again gets the same. */
export const later = (): Promise<typeof import("./later.ts")> => import("./later.ts");
