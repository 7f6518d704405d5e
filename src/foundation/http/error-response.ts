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

/** The body, status and headers of an error with a code. */
export const errorResponse = (code: ErrorCode, details: ErrorDetails = {}): ErrorResponse => ({
  status: ERROR_STATUS[code],
  headers: details.headers ?? {},
  body: {
    error: code,
    ...(details.message === undefined ? {} : { message: details.message }),
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
