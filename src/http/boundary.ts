import { type AnyElysia, Elysia } from "elysia";
import type { Clock } from "../base/clock.ts";
import { AppError, ERROR_STATUS, type ErrorCode, type ErrorDetails } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { RepeatedError } from "../base/repeated-error.ts";
import { newId } from "../base/secrets.ts";
import { loggedPath } from "./request-log.ts";
import { hasUsableHost, pathOf } from "./request-target.ts";

export interface BoundaryDeps {
  readonly log: Log;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The methods of a path, to distinguish 405 from 404; empty for a path that does not exist. */
  readonly methodsOf: (path: string) => readonly string[];
  /** The error as a page, for browsers; null for all other clients. */
  readonly errorPage?: (request: Request, error: PresentedError) => Response | null;
}

/** What is shown of an error. */
export interface PresentedError {
  readonly status: number;
  readonly message?: string;
  readonly requestId: string;
}

const REQUEST_ID_FORM = /^[A-Za-z0-9._-]{1,64}$/;
const HOST_NEEDED = "Send exactly one Host header: a host name or an address, and a port if needed.";
const UNAVAILABLE_RETRY_S = 5;
/**
 * Errors of SQLite, and of the file system that holds uploads, for a disk that is full, read-only or broken, and for a locked
 * database: a state of the service, not a bug.
 */
const DISK_STATES = /^(SQLITE_(FULL|READONLY|IOERR|BUSY|CANTOPEN|LOCKED)|(ENOSPC|EDQUOT|EROFS|EIO)$)/;

interface ErrorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const errorResponse = (code: ErrorCode, details: ErrorDetails = {}): ErrorResponse => ({
  status: ERROR_STATUS[code],
  headers: details.headers ?? {},
  body: {
    error: code,
    ...(details.message === undefined ? {} : { message: details.message }),
    ...(details.issues === undefined || details.issues.length === 0 ? {} : { issues: details.issues }),
    ...details.body,
  },
});

const unavailable = (message: string): ErrorResponse =>
  errorResponse("unavailable", { message, headers: { "retry-after": String(UNAVAILABLE_RETRY_S) } });

const notFound = (methods: readonly string[]): ErrorResponse =>
  methods.length === 0
    ? errorResponse("not_found", { message: "No such path. /openapi.json lists all paths." })
    : errorResponse("method_not_allowed", {
        message: `This path supports ${methods.join(", ")}.`,
        headers: { allow: methods.join(", ") },
      });

/** The client closed the connection; nginx logs this with 499, too. */
const CLIENT_GONE: ErrorResponse = { status: 499, headers: {}, body: {} };

/** The body ended too early: the client closed the connection or sent broken chunks. */
const isAbort = (error: unknown): boolean => error instanceof Error && error.name === "AbortError";

const errorCode = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

/**
 * Around every route: the `X-Request-Id` (the client's own if it is well-formed) and the error body. An
 * `AppError` becomes its own response; any other exception is logged and becomes a 500.
 */
export const createBoundary = ({ log, clock, methodsOf, errorPage }: BoundaryDeps): AnyElysia => {
  const writeFailures = new RepeatedError("database not writable", { log, clock });
  const toResponse = (error: unknown, code: unknown, request: Request, requestId: unknown): ErrorResponse => {
    if (error instanceof AppError) return errorResponse(error.code, error.details);
    if (isAbort(error)) return CLIENT_GONE;
    if (code === "NOT_FOUND") return notFound(methodsOf(pathOf(request)));
    const fields = { method: request.method, path: loggedPath(request), request_id: requestId, error };
    if (DISK_STATES.test(errorCode(error))) {
      writeFailures.log(fields);
      return unavailable("The database is not writable at the moment.");
    }
    log.error("request failed", fields);
    return errorResponse("internal_error", {
      message: "Internal error. The X-Request-Id identifies this request in the log.",
    });
  };

  return new Elysia({ name: "boundary" })
    .onRequest(({ request, set }) => {
      const given = request.headers.get("x-request-id");
      set.headers["x-request-id"] = given !== null && REQUEST_ID_FORM.test(given) ? given : newId();
      if (!hasUsableHost(request)) throw new AppError("Invalid host", { message: HOST_NEEDED });
    })
    .onError({ as: "global" }, ({ error, code, request, set }) => {
      const { status, headers, body } = toResponse(error, code, request, set.headers["x-request-id"]);
      set.status = status;
      Object.assign(set.headers, headers);
      const message = typeof body.message === "string" && code !== "NOT_FOUND" ? { message: body.message } : {};
      return errorPage?.(request, { status, ...message, requestId: String(set.headers["x-request-id"]) }) ?? body;
    });
};

/**
 * Finds the methods of a path among the routes of an application. Parameters (`:id`) match one segment. GET includes
 * HEAD.
 */
export const createMethodsOf = (routes: () => ReadonlyArray<{ readonly method: string; readonly path: string }>) => {
  let table: Array<{ readonly method: string; readonly form: RegExp }> | null = null;
  return (path: string): string[] => {
    table ??= routes().map(({ method, path: pattern }) => ({
      method,
      form: new RegExp(`^${pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/:[A-Za-z]+/g, "[^/]+")}/?$`),
    }));
    const methods = new Set(table.filter(({ form }) => form.test(path)).map(({ method }) => method));
    if (methods.has("GET")) methods.add("HEAD");
    return [...methods].toSorted();
  };
};
