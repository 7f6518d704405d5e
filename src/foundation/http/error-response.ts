import { isDatabaseState, ERROR_STATUS, type ErrorCode, type ErrorDetails, errorCode } from "../base/errors.ts";

const UNAVAILABLE_RETRY_S = 5;
/** Errors of the file system that holds uploads, for a disk that is full, read-only or broken: a state of the service, not a bug. */
const DISK_STATES = /^(ENOSPC|EDQUOT|EROFS|EIO)$/;

/** An error as a response with a JSON body. */
export interface ErrorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The messages of errors that are thrown without one. */
const MESSAGES: Partial<Record<ErrorCode, string>> = {
  "Request body must be valid JSON": "The request body is not valid JSON.",
  "Invalid cursor": "Send the `next_cursor` of the last page as `cursor`, with the other parameters unchanged.",
  not_found: "Nothing with this id exists in this account and mode.",
  unavailable: "The service is busy. Try again after the time in Retry-After.",
};

/** What an error says to a person: its own message, that of its first issue, or that of its code. */
const messageOf = (code: ErrorCode, { message, issues = [] }: ErrorDetails): string => {
  const [first] = issues;
  if (message !== undefined) return message;
  if (first === undefined) return MESSAGES[code] ?? code;
  return first.path === "" ? first.message : `${first.path}: ${first.message}`;
};

/** The body, status and headers of an error with a code. Every body has `error` and `message`. */
export const errorResponse = (code: ErrorCode, details: ErrorDetails = {}): ErrorResponse => ({
  status: ERROR_STATUS[code],
  headers: details.headers ?? {},
  body: {
    error: code,
    message: messageOf(code, details),
    ...(details.issues === undefined || details.issues.length === 0 ? {} : { issues: details.issues }),
    ...details.body,
  },
});

const unavailable = (message: string) =>
  errorResponse("unavailable", { message, headers: { "retry-after": String(UNAVAILABLE_RETRY_S) } });

/** Whether an error is a state of the disk or the database, not a bug. */
export const isDiskState = (error: unknown): boolean => isDatabaseState(error) || DISK_STATES.test(errorCode(error));

/** The response for an exception: 503 for a state of the disk, 500 for a bug, which is not described. */
export const failureResponse = (error: unknown): ErrorResponse =>
  isDiskState(error)
    ? unavailable("The database is not writable at the moment.")
    : errorResponse("internal_error", {
        message: "Internal error. The X-Request-Id identifies this request in the log.",
      });
