import { err, ok, type Result } from "../foundation/base/errors.ts";
import { FORM_CHECKS, type FormRules } from "../foundation/base/form-rules.ts";
import { ORIGINS_MAX, readOrigin } from "../foundation/http/form-gate.ts";

/** Largest limit of a publishable key, for a visitor or a day. */
export const FORM_LIMIT_MAX = 1_000_000;
/** A visitor corrects an address a few times; a form is sent some thousand times a day. */
export const FORM_DEFAULTS = { visitorPerHour: 20, perDay: 1_000, check: FORM_CHECKS[0] } as const;
/** A publishable key begins verifications and polls its own; nothing more. */
export const FORM_SCOPES: readonly string[] = ["verifications:write"];

/** What can be set of a publishable key. */
export type FormSettings = Omit<FormRules, "key">;
/** The settings of a new publishable key; those that are not given have their defaults. */
export type RequestedForms = Partial<FormSettings> & Pick<FormSettings, "origins">;

export const FORM_PROBLEMS = {
  origin_invalid: `Name 1 to ${ORIGINS_MAX} origins such as https://www.example.com, without a path; http only for localhost.`,
  limit_invalid: `A limit of a publishable key must be a whole number from 1 to ${FORM_LIMIT_MAX}.`,
};

const isLimit = (limit: number): boolean => Number.isSafeInteger(limit) && limit >= 1 && limit <= FORM_LIMIT_MAX;

/** Reads the settings of a publishable key, with its origins as browsers send them. */
export const readForms = (requested: RequestedForms): Result<FormSettings, keyof typeof FORM_PROBLEMS> => {
  const origins = [...new Set(requested.origins.map(readOrigin))].filter((origin) => origin !== null);
  const isComplete = requested.origins.every((origin) => readOrigin(origin) !== null);
  if (!isComplete || origins.length === 0 || origins.length > ORIGINS_MAX) return err("origin_invalid");
  const { visitorPerHour, perDay, check } = { ...FORM_DEFAULTS, ...requested };
  return isLimit(visitorPerHour) && isLimit(perDay)
    ? ok({ origins, visitorPerHour, perDay, check })
    : err("limit_invalid");
};
