import type { Clock } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { TurnGate } from "../foundation/base/turn-gate.ts";
import type { Log } from "../foundation/base/log.ts";
import type { CallerOf } from "./callers.ts";
import type { HttpApplication } from "./http-application.ts";
import type { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { errorResponse, failureResponse } from "../foundation/http/error-response.ts";
import { releaseBody } from "../foundation/http/request-memory.ts";
import { requestIdOf, createRequestLog, loggedPath } from "../foundation/http/request-log.ts";
import { hasUsableHost, pathOf, targetOf, withRoutableUrl } from "../foundation/http/request-target.ts";
import { addSecurityHeaders } from "../foundation/http/security-headers.ts";
import { withoutWrongLength } from "../foundation/http/response.ts";
import { LIVENESS, LIVENESS_PATH } from "./version.ts";

export interface ServerOptions {
  readonly log: Log;
  readonly clock: Clock;
  /** The application that a path at a host belongs to; a promise while it is being loaded. */
  readonly applicationOf: (path: string, host: string) => HttpApplication | Promise<HttpApplication>;
  /** Called with the method and status of each request. */
  readonly countRequest?: (method: string, status: number) => void;
  /** For whom a request is; without it all are one caller. */
  readonly callerOf?: CallerOf;
  readonly clients: ClientAddresses;
  /** Whether it speaks TLS itself. */
  readonly isTls?: boolean;
}

/** What listens for requests. */
export interface HttpApp {
  /** Handles a request, with or without a socket. */
  handle(request: Request): Promise<Response>;
  /** Sets the server that requests come from, so that the log can name their clients. */
  attach(server: Bun.Server<unknown>): void;
}

/**
 * The server: a request that finds no application waits until it is loaded. Plain requests for the liveness, which a supervisor
 * sends all the time, load none.
 */
export const createServer = ({
  log,
  clock,
  applicationOf,
  clients,
  countRequest,
  callerOf = () => null,
  isTls = false,
}: ServerOptions): HttpApp => {
  const requestLog = createRequestLog({ log, clock }, clients);
  const gate = new TurnGate(clock);
  const respond = async (request: Request): Promise<Response> => {
    if (isLivenessProbe(request)) return Response.json(LIVENESS, { headers: { "x-request-id": requestIdOf(request) } });
    const waiting = mayWait(request) ? gate.enter(() => callerOf(request)) : null;
    if (waiting !== null) await waiting;
    const application = await applicationOf(pathOf(request), request.headers.get("host") ?? "");
    return withoutWrongLength(request, await application.fetch(request));
  };
  return {
    async handle(given) {
      const noteResponse = requestLog.begin(given);
      const request = withRoutableUrl(given);
      // The runtime knows the proxy only until the response is sent.
      const isHttps = isTls || clients.isForwardedHttps(given);
      try {
        const response = await respond(request).catch((error: unknown) => failed(log, request, error));
        addSecurityHeaders(response.headers, pathOf(request), isHttps);
        noteResponse?.(response);
        countRequest?.(request.method, response.status);
        return response;
      } finally {
        releaseBody(request);
      }
    },
    attach: (server) => clients.attach(server),
  };
};

/** The body of a request that waits is in memory, where nothing counts it yet: only small ones may wait. */
const WAITING_BODY_BYTES_MAX = 4 * 1024;
const mayWait = ({ headers }: Request): boolean =>
  !headers.has("transfer-encoding") && Number(headers.get("content-length") ?? 0) <= WAITING_BODY_BYTES_MAX;

/** Whether this is exactly `GET /healthz`; the route decides about methods, parameters and invalid hosts. */
const isLivenessProbe = (request: Request): boolean =>
  request.method === "GET" && targetOf(request) === LIVENESS_PATH && hasUsableHost(request);

/** The response where the application is not loaded yet or could not be loaded. */
const failed = (log: Log, request: Request, error: unknown): Response => {
  const requestId = requestIdOf(request);
  const isState = error instanceof AppError;
  if (!isState)
    log.error("request failed", { method: request.method, path: loggedPath(request), request_id: requestId, error });
  const { status, headers, body } = isState ? errorResponse(error.code, error.details) : failureResponse(error);
  return Response.json(body, { status, headers: { ...headers, "x-request-id": requestId } });
};
