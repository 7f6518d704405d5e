import { type AnyElysia, Elysia } from "elysia";
import type { Clock } from "../base/clock.ts";
import { AppError, ERROR_STATUS, type ErrorCode, type ErrorDetails } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { newId } from "../base/secrets.ts";
import type { ClientAddress } from "./client-address.ts";
import { hasUsableHost, pathOf } from "./request-target.ts";

export interface BoundaryDeps {
  readonly log: Log;
  readonly clock: Clock;
  /** The methods that a path answers, to tell 405 from 404; empty for a path that does not exist. */
  readonly methodsOf: (path: string) => readonly string[];
  /** Who sent a request, for the log. */
  readonly clientOf: ClientAddress;
}

const REQUEST_ID_FORM = /^[A-Za-z0-9._-]{1,64}$/;
const HOST_NEEDED = "Send one Host header, with a host name or an address and, if needed, a port.";
const UNAVAILABLE_RETRY_S = 5;
/** What SQLite says when the disk is full, read-only, broken or locked: the service's state, not a bug. */
const DATABASE_STATES = /^SQLITE_(FULL|READONLY|IOERR|BUSY|CANTOPEN|LOCKED)/;

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const answerOf = (code: ErrorCode, details: ErrorDetails = {}): Answer => ({
  status: ERROR_STATUS[code],
  headers: details.headers ?? {},
  body: {
    error: code,
    ...(details.message === undefined ? {} : { message: details.message }),
    ...(details.issues === undefined || details.issues.length === 0 ? {} : { issues: details.issues }),
    ...details.body,
  },
});

const unavailable = (message: string): Answer =>
  answerOf("unavailable", { message, headers: { "retry-after": String(UNAVAILABLE_RETRY_S) } });

const notFound = (methods: readonly string[]): Answer =>
  methods.length === 0
    ? answerOf("not_found", { message: "There is no such path. /openapi.json lists all there are." })
    : answerOf("method_not_allowed", {
        message: `This path answers ${methods.join(", ")}.`,
        headers: { allow: methods.join(", ") },
      });

/** Nobody hears it; the log of answers shows it as what it is (the number that proxies use for it). */
const CALLER_GONE: Answer = { status: 499, headers: {}, body: {} };

/** A body that ended too early: the caller hung up, or sent broken chunks. */
const isAbort = (error: unknown): boolean => error instanceof Error && error.name === "AbortError";

const sqliteCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/**
 * What every request passes: an `X-Request-Id` (the caller's own where it has a sober form), a log line, and the one
 * error body. An `AppError` is answered as it says; anything else that is thrown is logged and answered as a 500.
 */
export const createBoundary = ({ log, clock, methodsOf, clientOf }: BoundaryDeps): AnyElysia => {
  const judge = (error: unknown, code: unknown, request: Request, requestId: unknown): Answer => {
    if (error instanceof AppError) return answerOf(error.code, error.details);
    if (isAbort(error)) return CALLER_GONE;
    const path = pathOf(request);
    if (code === "NOT_FOUND") return notFound(methodsOf(path));
    const fields = { method: request.method, path, request_id: requestId, cause: error };
    if (DATABASE_STATES.test(sqliteCode(error))) {
      log.error("the database cannot be written", fields);
      return unavailable("The database cannot be written at the moment.");
    }
    log.error("a request failed", fields);
    return answerOf("internal_error", {
      message: "Something went wrong on our side. The X-Request-Id names it in the log.",
    });
  };

  const boundary = new Elysia({ name: "boundary" })
    .onRequest(({ request, set }) => {
      const given = request.headers.get("x-request-id");
      set.headers["x-request-id"] = given !== null && REQUEST_ID_FORM.test(given) ? given : newId();
      if (!hasUsableHost(request)) throw new AppError("Invalid host", { message: HOST_NEEDED });
    })
    .onError({ as: "global" }, ({ error, code, request, set }) => {
      const { status, headers, body } = judge(error, code, request, set.headers["x-request-id"]);
      set.status = status;
      Object.assign(set.headers, headers);
      return body;
    });
  return log.enabled("debug") ? boundary.use(requestLog({ log, clock, clientOf })) : boundary;
};

/** A line for each request that was answered. A part of its own, so that it costs nothing where nobody reads it. */
const requestLog = ({ log, clock, clientOf }: Omit<BoundaryDeps, "methodsOf">) => {
  const begun = new WeakMap<Request, { readonly atMs: number; readonly client: string | null }>();

  return new Elysia({ name: "request-log" })
    .onRequest(({ request, server }) => {
      // The platform knows the peer only until the answer is out.
      const peer = server?.requestIP(request)?.address;
      const client = peer === undefined ? null : clientOf(peer, request.headers.get("x-forwarded-for"));
      begun.set(request, { atMs: clock.monotonicMs(), client });
    })
    .onAfterResponse({ as: "global" }, ({ request, set }) => {
      const { atMs = clock.monotonicMs(), client = null } = begun.get(request) ?? {};
      log.debug("answered", {
        method: request.method,
        path: pathOf(request),
        status: set.status,
        ms: Math.round(clock.monotonicMs() - atMs),
        client,
        request_id: set.headers["x-request-id"],
      });
    });
};

/**
 * Which methods a path answers, from the routes of an application. Parameters (`:id`) match one segment.
 * A route that answers GET answers HEAD too.
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
