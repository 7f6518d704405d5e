import { type AnyElysia, Elysia } from "elysia";
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { type Log, RepeatedError } from "../base/log.ts";
import { requestIdOf, loggedPath } from "./request-log.ts";
import { type ErrorResponse, errorResponse, failureResponse, isDiskState } from "./error-response.ts";
import { hasUsableHost, pathOf } from "./request-target.ts";

interface BoundaryDeps {
  readonly log: Log;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The methods of a path, to distinguish 405 from 404; empty for a path that does not exist. */
  readonly methodsOf: (path: string) => readonly string[];
  readonly errorPage?: ErrorPage;
}

/** An error as a page, for browsers; null for all other clients. */
export type ErrorPage = (request: Request, error: PresentedError) => Promise<Response | null>;

/** What is shown of an error. */
interface PresentedError {
  readonly status: number;
  readonly message?: string;
  readonly requestId: string;
}

const HOST_NEEDED = "Send exactly one Host header: a host name or an address, and a port if needed.";

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
const isAbort = (error: unknown) => error instanceof Error && error.name === "AbortError";

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
    if (isDiskState(error)) writeFailures.log(fields);
    else log.error("request failed", fields);
    return failureResponse(error);
  };

  return new Elysia({ name: "boundary" })
    .onRequest(({ request, set }) => {
      set.headers["x-request-id"] = requestIdOf(request);
      if (!hasUsableHost(request)) throw new AppError("Invalid host", { message: HOST_NEEDED });
    })
    .onError({ as: "global" }, async ({ error, code, request, set }) => {
      const { status, headers, body } = toResponse(error, code, request, set.headers["x-request-id"]);
      set.status = status;
      Object.assign(set.headers, headers);
      const message = typeof body.message === "string" && code !== "NOT_FOUND" ? { message: body.message } : {};
      const requestId = String(set.headers["x-request-id"]);
      return (await errorPage?.(request, { status, ...message, requestId })) ?? body;
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
      // input ≤ 65,536 characters
      form: new RegExp(`^${pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/:[A-Za-z]+/g, "[^/]+")}/?$`),
    }));
    const methods = new Set(table.filter(({ form }) => form.test(path)).map(({ method }) => method));
    if (methods.has("GET")) methods.add("HEAD");
    return [...methods].toSorted();
  };
};
