/** An outcome its caller must branch on. `E` is a closed union, never a bare string or an Error. */
export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

/** The code of an error of the system or of SQLite, such as `ENOENT` or `SQLITE_FULL`; empty for any other. */
export const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : "";

/** What an exception says. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const ok = <T>(value: T): Result<T, never> => ({ ok: true, value });
export const err = <E>(error: E): Result<never, E> => ({ ok: false, error });

/** Every `error` code of the API, with its HTTP status. The codes are part of the API. */
export const ERROR_STATUS = {
  "Invalid host": 400,
  "Invalid timeout": 400,
  "Request body must be valid JSON": 400,
  "Invalid request body": 400,
  "Invalid query": 400,
  "Invalid limit": 400,
  "Invalid cursor": 400,
  "Invalid idempotency key": 400,
  unauthorized: 401,
  insufficient_credits: 402,
  account_disabled: 403,
  insufficient_scope: 403,
  origin_not_allowed: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_reused: 422,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** What may stand in an error body beside `error`, and the headers that go with it. */
export interface ErrorDetails {
  readonly message?: string;
  readonly issues?: ReadonlyArray<{ readonly path: string; readonly message: string }>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * An error of the client, or a state of the service that the client must know.
 * Everything else that is thrown is a bug and becomes `internal_error` at the boundary.
 */
export class AppError extends Error {
  constructor(
    readonly code: ErrorCode,
    readonly details: ErrorDetails = {},
  ) {
    super(details.message ?? code);
    this.name = "AppError";
  }
}

/** Settings that are well-formed but cannot be used, such as a file that does not exist: one sentence for each problem. */
export class SettingsError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(["Invalid settings:", ...problems.map((problem) => `  ${problem}`)].join("\n"));
  }
}

/** What SQLite reports when the disk is full or broken, the file locked or read-only, or memory short. */
const STATES = /^SQLITE_(FULL|READONLY|IOERR|BUSY|CANTOPEN|LOCKED|NOMEM|PROTOCOL)/;

/**
 * Whether an error is about the present state of the database, so that the same write may succeed later. False for bugs of
 * statements and for a damaged file (`SQLITE_CORRUPT`, `SQLITE_NOTADB`): the same write would fail every time.
 */
export const isDatabaseState = (error: unknown): boolean => STATES.test(errorCode(error));
