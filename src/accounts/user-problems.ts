import type { Result } from "../foundation/base/errors.ts";

/** Why a change of users was refused; the sentence says what to do. */
export interface UserProblem {
  readonly code:
    | "unknown_user"
    | "unknown_account"
    | "account_disabled"
    | "email_invalid"
    | "email_taken"
    | "password_invalid"
    | "password_wrong"
    | "last_owner"
    | "forbidden"
    | "link_invalid"
    | "link_expired"
    | "link_used"
    | "time_zone_invalid"
    | "code_wrong"
    | "codes_off"
    | "throttled"
    | "busy";
  readonly message: string;
}

const MESSAGES: Readonly<Record<Exclude<UserProblem["code"], "password_invalid" | "throttled">, string>> = {
  unknown_user: "There is no such user.",
  unknown_account: "There is no such account.",
  account_disabled: "The account is disabled. Ask the operator of the service to enable it.",
  email_invalid: "This is not an email address.",
  email_taken: "A user with this email address already exists.",
  password_wrong: "This is not your password.",
  last_owner: "This is the last owner of the account. Make another user an owner first.",
  forbidden: "Only an operator of the service may change an operator.",
  link_invalid: "This link does not exist.",
  link_expired: "This link has expired.",
  link_used: "This link was used before. A link works once.",
  time_zone_invalid: "This is not a time zone such as Europe/Berlin.",
  code_wrong: "This code is wrong or was used before. Enter the present code of your app.",
  codes_off: "Codes are switched off.",
  busy: "Too many sign-ins at this moment. Try again in a few seconds.",
};

/** A refusal with its sentence. */
export const refuse = (code: keyof typeof MESSAGES): Result<never, UserProblem> => ({
  ok: false,
  error: { code, message: MESSAGES[code] },
});
