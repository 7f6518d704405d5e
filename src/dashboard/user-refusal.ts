import type { UserProblem } from "../accounts/user-store.ts";
import { AppError, type ErrorCode } from "../foundation/base/errors.ts";

const STATUS_OF: Partial<Readonly<Record<UserProblem["code"], ErrorCode>>> = {
  unknown_user: "not_found",
  unknown_account: "not_found",
  forbidden: "insufficient_scope",
  account_disabled: "account_disabled",
  email_taken: "conflict",
  last_owner: "conflict",
  viewer_invalid: "conflict",
  throttled: "rate_limited",
  busy: "unavailable",
};

/** The field of a form that a problem is about; `password` is the name of the one with the new password. */
const fieldOf = ({ code }: UserProblem): string | null => {
  switch (code) {
    case "email_invalid":
    case "email_taken":
      return "email";
    case "password_invalid":
      return "password";
    case "password_wrong":
      return "present";
    case "code_wrong":
      return "code";
    case "time_zone_invalid":
      return "time_zone";
    default:
      return null;
  }
};

/** The error of a form for what a use case of users refused: beside its field, or above the form. */
export const userRefusal = (problem: UserProblem): AppError => {
  const field = fieldOf(problem);
  const issues = field === null ? [] : [{ path: field, message: problem.message }];
  return new AppError(STATUS_OF[problem.code] ?? "Invalid request body", { message: problem.message, issues });
};

/** Refuses a form whose two new passwords differ. */
export const requireSame = (password: string, repeat: string): void => {
  if (password === repeat) return;
  const message = "The two passwords differ.";
  throw new AppError("Invalid request body", { message, issues: [{ path: "repeat", message }] });
};
