import type { Random } from "../base/secrets.ts";

const GIVEN = [
  "anna",
  "marek",
  "sofia",
  "jonas",
  "elena",
  "pavel",
  "maria",
  "tomas",
  "julia",
  "henrik",
  "lucia",
  "oscar",
  "irina",
  "felix",
  "carla",
  "viktor",
];
const FAMILY = [
  "lindqvist",
  "moravec",
  "castellan",
  "brandauer",
  "petrosyan",
  "ostrander",
  "villanova",
  "kowalik",
  "haverkamp",
  "sorensen",
  "marchetti",
  "dubrovin",
  "thornbury",
  "escobedo",
  "nakagawa",
  "weissman",
];
const DIGITS = 5;

/**
 * A local part that looks like a person's and that nobody has: two names and five digits, some 25 million of them.
 * Differs at each call.
 */
export const randomLocalPart = (random: Random): string => {
  const name = (names: readonly string[]) => names[random.integer(names.length)] ?? "anna";
  const digits = Array.from({ length: DIGITS }, () => String(random.integer(10))).join("");
  return `${name(GIVEN)}.${name(FAMILY)}${digits}`;
};
