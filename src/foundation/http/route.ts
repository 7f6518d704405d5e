import { NotFoundError } from "elysia";
import { z } from "zod";
import type { ErrorCode } from "../base/errors.ts";
import { readJson, readOptionalJson, abortIfClientGone } from "./body.ts";
import type { Caller, Guard } from "./guard.ts";
import { createQueryReader, readHeaders, readParams, subjectOf } from "./route-input.ts";
import type { Scope } from "./scopes.ts";

/** A JSON request body. The handler gets it parsed; 400 `Invalid request body` names what does not fit. */
interface JsonBody<B extends z.ZodType = z.ZodType> {
  readonly schema: B;
  readonly example: unknown;
  /** A request without a body counts as `{}`. */
  readonly isOptional?: boolean;
  /** Largest accepted size; 413 above it. Default: 1 MiB. */
  readonly bytesMax?: number;
}

/** A body of one of several media types. The handler reads it from the request itself. */
export type Uploads = Readonly<Record<string, { readonly schema: z.ZodType; readonly example: unknown }>>;

/** One response of a route. */
export interface RouteResponse {
  readonly description: string;
  /** Absent for an empty body. */
  readonly schema?: z.ZodType;
  /** Default: `application/json`. */
  readonly contentType?: string;
  /** A function is called when the OpenAPI document is requested. */
  readonly example?: unknown;
  /** The same in other media types, for example for `Accept: text/csv`; `schema` is of the text, or of a line of NDJSON. */
  readonly alternatives?: Readonly<Record<string, { readonly schema: z.ZodType; readonly example: unknown }>>;
  /** Header name → description. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Everything there is to say about one route. Request validation, the types of the handler and the OpenAPI document
 * derive from it.
 */
export interface Route<P extends z.ZodObject, Q extends z.ZodObject, H extends z.ZodObject, B extends z.ZodType> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** As in the router: `/v1/things/:id`. */
  readonly path: string;
  /** A verb and a noun in camel case, unique: the name of the function in generated clients. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** The scope that the key needs; null: any key. "open": no key. */
  readonly scope: Scope | null | "open";
  /** Why its requests are not in the audit log, for a route that changes something. */
  readonly unrecorded?: string;
  /** Whether a request that changes no row is not in the audit log although it succeeds. */
  readonly recordedIfChanged?: true;
  /** The field of the body that says what the request is about, for the audit log; default: the first parameter of the path. Never an email address. */
  readonly subjectField?: string;
  /** The key may also be the password of HTTP Basic: services that call URLs send nothing else. */
  readonly acceptsBasic?: true;
  /** Takes one token of the key's bucket. */
  readonly rateLimited?: boolean;
  /** Whether a publishable key may call it, from the pages of its origins. */
  readonly forForms?: boolean;
  /** Parameters in the path. A value that does not fit is a 404. */
  readonly params?: P;
  /** Query parameters, as a strict object: an unknown one is a 400. */
  readonly query?: Q;
  /** Request headers that the route reads, by their names in lower case. */
  readonly headers?: H;
  readonly body?: JsonBody<B>;
  readonly uploads?: Uploads;
  /** By status. */
  readonly responses: Readonly<Record<number, RouteResponse>>;
  /** Error codes of this route, beside those that follow from its scope, parameters and body. */
  readonly errors?: readonly ErrorCode[];
}

export type AnyRoute = Route<z.ZodObject, z.ZodObject, z.ZodObject, z.ZodType>;

/** Declares a route. The identity function: it infers the types that `handle` needs. */
export const declareRoute = <
  P extends z.ZodObject = z.ZodObject<Record<never, z.ZodType>>,
  Q extends z.ZodObject = z.ZodObject<Record<never, z.ZodType>>,
  H extends z.ZodObject = z.ZodObject<Record<never, z.ZodType>>,
  B extends z.ZodType = z.ZodUndefined,
>(
  route: Route<P, Q, H, B>,
): Route<P, Q, H, B> => route;

/** Status and headers of the response, for a handler that does not return a `Response`. */
interface ResponseHead {
  status?: number | string;
  headers: Record<string, string | number>;
}

/** What a handler gets: everything is checked against the route's declaration. */
interface RouteInput<P, Q, H, B> {
  readonly request: Request;
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly headers: H;
  readonly body: B;
  readonly set: ResponseHead;
}

/** A route with the function that serves it. */
export interface HandledRoute {
  readonly route: AnyRoute;
  serve(
    guard: Guard,
    request: Request,
    raw: { readonly params: unknown; readonly set: ResponseHead },
  ): Promise<unknown>;
}

/**
 * Binds a handler to its route. It returns the response body, or a `Response`. Checks run in this order: key, scope, rate
 * limit, query, path, body, headers.
 */
export const handle = <P extends z.ZodObject, Q extends z.ZodObject, H extends z.ZodObject, B extends z.ZodType>(
  route: Route<P, Q, H, B>,
  handler: (input: RouteInput<z.output<P>, z.output<Q>, z.output<H>, z.output<B>>) => unknown,
): HandledRoute => {
  const readQuery = createQueryReader(route.query);
  return {
    route,
    async serve(guard, request, { params, set }) {
      const caller = guard.admit(request, set, route);
      const query = readQuery(request);
      // Reading a body waits for that turn, too.
      if (request.method !== "GET" && request.method !== "HEAD" && route.body === undefined)
        await abortIfClientGone(request);
      const input = {
        request,
        caller,
        set,
        query,
        params: readParams(route.params, params),
        body: await readBody(route.body, request),
        headers: readHeaders(route.headers, request),
      };
      const work = async (): Promise<unknown> => handler(input);
      if (!isRecorded(route, input)) return work();
      const isRecordedUnchanged = (response: unknown) =>
        route.recordedIfChanged !== true && statusOf(response, set) < CLIENT_ERROR;
      const done = { action: `api.${route.operationId}`, subject: subjectIn(route, input) };
      return guard.perform(caller, done, { work, isRecordedUnchanged });
    },
  };
};

/** What a request is about, for the audit log. */
const subjectIn = (
  { path, subjectField: field }: AnyRoute,
  { params, body }: { readonly params: Readonly<Record<string, unknown>>; readonly body: unknown },
): string | null =>
  field === undefined
    ? subjectOf(path, params)
    : (z.object({ [field]: z.string() }).safeParse(body).data?.[field] ?? null);

const CLIENT_ERROR = 400;

const DRY_RUN = z.object({ dry_run: z.literal(true) });

/** Whether the audit log has a request: it may change something, and is no dry run. */
const isRecorded = ({ method, unrecorded }: AnyRoute, { query, body }: { query: unknown; body: unknown }) =>
  method !== "GET" && unrecorded === undefined && ![query, body].some((part) => DRY_RUN.safeParse(part).success);

const statusOf = (response: unknown, { status }: ResponseHead) =>
  response instanceof Response ? response.status : typeof status === "number" ? status : 200;

/** The same for a route that needs no key. */
export const handleOpen = (route: AnyRoute, handler: (request: Request) => unknown): HandledRoute => {
  const readQuery = createQueryReader(route.query);
  return {
    route,
    async serve(guard, request) {
      guard.admitAnyone(request);
      readQuery(request);
      return handler(request);
    },
  };
};

const readBody = async <B extends z.ZodType>(body: JsonBody<B> | undefined, request: Request): Promise<z.output<B>> => {
  // Without a declared body, B is `undefined`.
  if (body === undefined) return undefined as z.output<B>;
  return body.isOptional === true
    ? readOptionalJson(request, body.schema)
    : readJson(request, body.schema, body.bytesMax);
};

/** A route of an application. */
export interface ServedRoute {
  readonly method: string;
  /** Parameters are written `:id`. */
  readonly path: string;
  /** Returns the response body, or a `Response`. */
  serve(input: { readonly request: Request; readonly params: unknown; readonly set: ResponseHead }): unknown;
}

/** The method of preflights, which no document lists. */
export const PREFLIGHT = "OPTIONS";

/** The routes of one slice, as a part of the application. */
export const serveRoutes = (guard: Guard, handled: readonly HandledRoute[]): readonly ServedRoute[] =>
  handled.flatMap(({ route: { method, path, forForms }, serve }) => [
    { method, path, serve: ({ request, params, set }) => serve(guard, request, { params, set }) },
    ...(forForms === true ? [preflightOf(guard, path)] : []),
  ]);

/** What a browser asks before a page of another origin sends a request (CORS). Any other OPTIONS is no method of the path. */
const preflightOf = (guard: Guard, path: string): ServedRoute => ({
  method: PREFLIGHT,
  path,
  serve({ request, set }) {
    if (!request.headers.has("access-control-request-method")) throw new NotFoundError();
    guard.admitPreflight(request, set.headers);
    set.status = 204;
  },
});
