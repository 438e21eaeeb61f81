/**
 * The key `skills` of a server and of the settings: which skills of a server may be loaded, and whether each asks. From the
 * strictest to the loosest: none, each after a yes, all. Pure.
 */
import * as z from "zod";
import { flag, shapeOf } from "./shape.ts";

const WORDS = ["ask", "allow"] as const;

/** As it is written. */
type WrittenSkills =
  | false
  | (typeof WORDS)[number]
  | { use?: (typeof WORDS)[number] | undefined; dynamic?: boolean | undefined };

/** `dynamic`: skills whose content cannot be checked may be loaded, too. */
export interface SkillPolicy {
  use: false | (typeof WORDS)[number];
  dynamic: boolean;
}

export const ASK_FOR_SKILLS: SkillPolicy = { use: "ask", dynamic: false };

export const skillsShape = () =>
  z.union([
    z.literal(false),
    z.enum(WORDS),
    z.looseObject(
      shapeOf({
        use: {
          schema: () => z.enum(WORDS),
          description: "ask or allow, as above.",
          examples: ["ask"],
        },
        dynamic: {
          schema: flag,
          description: "Also skills whose files the server makes anew each time: nobody can check these.",
          examples: [true],
        },
      }),
    ),
  ]);

/** `otherwise`: what counts where nothing is written. */
export const skillPolicy = (
  written: WrittenSkills | undefined,
  otherwise: SkillPolicy = ASK_FOR_SKILLS,
): SkillPolicy => {
  if (written === undefined) return otherwise;
  if (written === false) return { use: false, dynamic: false };
  if (typeof written === "string") return { use: written, dynamic: otherwise.dynamic };
  return { use: written.use ?? (otherwise.use || "ask"), dynamic: written.dynamic ?? otherwise.dynamic };
};

const ORDER = [false, ...WORDS] as const;

/** The stricter of both in each part, and whether `wanted` asks for more than `own` allows. */
export function stricterSkills(
  own: SkillPolicy,
  wanted: SkillPolicy,
): { policy: SkillPolicy; isLooser: boolean } {
  const isMore = ORDER.indexOf(wanted.use) > ORDER.indexOf(own.use);
  const dynamic = own.dynamic && wanted.dynamic;
  return {
    policy: { use: isMore ? own.use : wanted.use, dynamic },
    isLooser: isMore || (wanted.dynamic && !own.dynamic),
  };
}

/** The same of what is written, as it could be written. */
export function lessSkills(
  written: WrittenSkills | undefined,
  wanted: WrittenSkills,
): { value: WrittenSkills; isLooser: boolean } {
  const own = skillPolicy(written);
  const { policy, isLooser } = stricterSkills(own, skillPolicy(wanted, own));
  const { use, dynamic } = policy;
  return { value: use !== false && { use, dynamic }, isLooser };
}
