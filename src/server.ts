import { type AnyElysia, Elysia } from "elysia";
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import { createBoundary, createMethodsOf, type PresentedError } from "./http/boundary.ts";
import type { ClientAddresses } from "./http/client-addresses.ts";
import { createRequestLog } from "./http/request-log.ts";
import { withoutWrongLength } from "./http/response.ts";
import { releaseBody } from "./http/request-memory.ts";
import { withRoutableUrl } from "./http/request-target.ts";

export interface ServerOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly routes: readonly AnyElysia[];
  /** An error as a page, for browsers; null for all other clients. */
  readonly errorPage?: (request: Request, error: PresentedError) => Response | null;
  /** Called with the method and status of each request. */
  readonly countRequest?: (method: string, status: number) => void;
  readonly clients: ClientAddresses;
}

/** The application: all routes inside the request boundary. */
export interface HttpApp {
  /** Handles a request, with or without a socket. */
  handle(request: Request): Promise<Response>;
  /** Every route; parameters are written `:id`. */
  readonly routes: ReadonlyArray<{ readonly method: string; readonly path: string }>;
  /** Sets the server that requests come from, so that the log can name their clients. */
  attach(server: Bun.Server<unknown>): void;
  /** Replaces the networks whose X-Forwarded-For is trusted. */
  trustProxies(networks: readonly string[]): void;
}

export const createServer = ({ log, clock, routes, clients, countRequest, errorPage }: ServerOptions): HttpApp => {
  const requestLog = createRequestLog({ log, clock }, clients);
  const methodsOf = createMethodsOf(() => app.routes);
  const app: AnyElysia = routes.reduce<AnyElysia>(
    (whole, slice) => whole.use(slice),
    // Makes the router find the path after any host name, also a short one.
    new Elysia({ name: "server", handler: { standardHostname: false } }).use(
      createBoundary({ log, clock, methodsOf, ...(errorPage === undefined ? {} : { errorPage }) }),
    ),
  );
  return {
    async handle(request) {
      const noteResponse = requestLog.begin(request);
      try {
        const response = withoutWrongLength(request, await app.fetch(withRoutableUrl(request)));
        noteResponse?.(response);
        countRequest?.(request.method, response.status);
        return response;
      } finally {
        releaseBody(request);
      }
    },
    get routes() {
      return app.routes;
    },
    attach(server) {
      app.server = server;
      clients.attach(server);
    },
    trustProxies: (networks) => clients.trust(networks),
  };
};
