import { type AnyElysia, Elysia } from "elysia";
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import { createBoundary, createMethodsOf } from "./http/boundary.ts";
import { createClientAddress } from "./http/client-address.ts";
import { withoutWrongLength } from "./http/response.ts";
import { releaseBody } from "./http/request-memory.ts";
import { withRoutableUrl } from "./http/request-target.ts";

export interface ServerDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly routes: readonly AnyElysia[];
  /** Networks whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
}

/** The application: the boundary around all routes. */
export interface HttpApp {
  /** Answers a request, with or without a socket. */
  handle(request: Request): Promise<Response>;
  /** Every route there is; parameters are written `:id`. */
  readonly routes: ReadonlyArray<{ readonly method: string; readonly path: string }>;
  /** Names the server whose requests come in, so that the log knows their peers. */
  attach(server: Bun.Server<unknown>): void;
}

export const createServer = ({ log, clock, routes, trustedProxies }: ServerDeps): HttpApp => {
  const clientOf = createClientAddress(trustedProxies);
  const methodsOf = createMethodsOf(() => app.routes);
  const app: AnyElysia = routes.reduce<AnyElysia>(
    (whole, slice) => whole.use(slice),
    // The router looks for the path behind the scheme, not behind a host name of four letters or more.
    new Elysia({ name: "server", handler: { standardHostname: false } }).use(
      createBoundary({ log, clock, methodsOf, clientOf }),
    ),
  );
  return {
    async handle(request) {
      try {
        return withoutWrongLength(request, await app.fetch(withRoutableUrl(request)));
      } finally {
        releaseBody(request);
      }
    },
    get routes() {
      return app.routes;
    },
    attach(server) {
      app.server = server;
    },
  };
};
