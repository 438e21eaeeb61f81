/**
 * Owns: how large the attacks are. Under `npm run test:long` each has its whole size. By default it is
 * just above the limit that the row is about.
 */
import { ALL_ROWS, IS_WHOLE, sized } from "../../support/long.ts";
import type { Row } from "../support/row.ts";

export { sized } from "../../support/long.ts";

/** Small, such attacks take no more than others and run beside them. */
export const besideIfSmall: Partial<Row> = sized({}, { beside: false });
/** Whole, such an attack would also disturb the next row of its session. */
export const besideOrHome: Partial<Row> = sized({}, { alone: "home" });

/** The pause between the pieces of a flood without end. Without one, which `.ci/run` tries, it fills a core. */
export const PAUSE_MS = IS_WHOLE || ALL_ROWS ? 0 : 100;
export const besideIfPaused: Partial<Row> = PAUSE_MS > 0 ? {} : { beside: false };

/** The number as a row's name shows it. */
export const shown = (count: number): string => count.toLocaleString("en-US");
