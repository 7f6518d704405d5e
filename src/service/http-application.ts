import { type AnyElysia, Elysia } from "elysia";
import type { Clock } from "../foundation/base/clock.ts";
import type { Log } from "../foundation/base/log.ts";
import { PREFLIGHT, type ServedRoute } from "../foundation/http/route.ts";
import { createBoundary, createMethodsOf, type ErrorPage } from "../foundation/http/boundary.ts";
import { pathOf } from "../foundation/http/request-target.ts";

export interface ApplicationOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly routes: readonly ServedRoute[];
  readonly errorPage?: ErrorPage;
}

/** Routes inside the request boundary. */
export interface HttpApplication {
  /** Responds to a request with a routable URL. */
  fetch(request: Request): Response | Promise<Response>;
  /** Every route; parameters are written `:id`. */
  readonly routes: ReadonlyArray<Pick<ServedRoute, "method" | "path">>;
}

/** The first segment of a path behind `/v1` and `/test`: no route has a parameter there. */
export const areaOf = (path: string): string => /^\/(?:(?:v1|test)(?:\/|$))?([^/]*)/.exec(path)?.[1] ?? "";

/** The application: each area has a router of its own, which its first request compiles. */
export const createApplication = ({ routes, ...deps }: ApplicationOptions): HttpApplication => {
  const listed = routes.filter(({ method }) => method !== PREFLIGHT);
  const boundary = createBoundary({ ...deps, methodsOf: createMethodsOf(() => listed) });
  const areas = Map.groupBy(routes, ({ path }) => areaOf(path));
  const routers = new Map<string | null, AnyElysia>();
  const routerOf = (path: string): AnyElysia => {
    const area = areaOf(path);
    // All paths of no area have one router, however many there are.
    const name = areas.has(area) ? area : null;
    const router = routers.get(name) ?? createRouter(areas.get(area) ?? [], boundary);
    routers.set(name, router);
    return router;
  };
  return { routes: listed, fetch: (request) => routerOf(pathOf(request)).fetch(request) };
};

const createRouter = (routes: readonly ServedRoute[], boundary: AnyElysia): AnyElysia =>
  routes.reduce<AnyElysia>(
    (whole, route) =>
      // Elysia reads in the source of a handler what it needs.
      whole.route(route.method, route.path, ({ request, params, set }) => route.serve({ request, params, set }), {
        parse: "none",
      }),
    // Makes the router find the path after any host name, also a short one.
    new Elysia({ name: "server", handler: { standardHostname: false } }).use(boundary),
  );
