import { type AnyElysia, Elysia } from "elysia";
import type { Clock } from "../foundation/base/clock.ts";
import type { Log } from "../foundation/base/log.ts";
import type { AddRoutes } from "../foundation/http/route.ts";
import { createBoundary, createMethodsOf, type ErrorPage } from "../foundation/http/boundary.ts";

export interface ApplicationOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly routes: readonly AddRoutes[];
  readonly errorPage?: ErrorPage;
}

/** Routes inside the request boundary. */
export interface HttpApplication {
  /** Responds to a request with a routable URL. */
  fetch(request: Request): Response | Promise<Response>;
  /** Every route; parameters are written `:id`. */
  readonly routes: ReadonlyArray<{ readonly method: string; readonly path: string }>;
}

export const createApplication = ({ routes, ...boundary }: ApplicationOptions): HttpApplication => {
  const methodsOf = createMethodsOf(() => app.routes);
  const app: AnyElysia = routes.reduce<AnyElysia>(
    (whole, add) => add(whole),
    // Makes the router find the path after any host name, also a short one.
    new Elysia({ name: "server", handler: { standardHostname: false } }).use(
      createBoundary({ ...boundary, methodsOf }),
    ),
  );
  return app;
};
