import { type AnyElysia, Elysia } from "elysia";
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import { createBoundary, createMethodsOf } from "./http/boundary.ts";
import { createClientAddress } from "./http/client-address.ts";

export interface ServerDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly routes: readonly AnyElysia[];
  /** Networks whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
}

/** The application: the boundary around all routes. `app.handle(request)` answers without a socket. */
export const createServer = ({ log, clock, routes, trustedProxies }: ServerDeps) => {
  const clientOf = createClientAddress(trustedProxies);
  const methodsOf = createMethodsOf(() => app.routes);
  const app: AnyElysia = routes.reduce<AnyElysia>(
    (whole, slice) => whole.use(slice),
    new Elysia({ name: "server", handler: { standardHostname: false } }).use(
      createBoundary({ log, clock, methodsOf, clientOf }),
    ),
  );
  return app;
};
