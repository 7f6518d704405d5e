import { z } from "zod";
import { performForm, readFormValues, readPathOf, readQueryOf, requireUploadToken } from "./form-input.ts";
import type { Viewer, FormState, View, Visit, Outcome, Access } from "./visit.ts";

/** A page or an action with the function that serves it. */
export interface PageRoute {
  readonly method: "GET" | "POST";
  /** As in the router: `/lists/:id`. */
  readonly path: string;
  readonly access: Access;
  /** What the audit log calls it; absent or null: the use case writes it, or there is nothing to write. */
  readonly action?: string | null;
  serve(visit: Visit): Promise<Outcome | Response>;
}

interface PageOptions<P extends z.ZodObject, Q extends z.ZodObject> {
  readonly path: string;
  readonly params?: P;
  /** Values that do not fit are dropped: a page never fails for its query. */
  readonly query?: Q;
}

export interface PageInput<P, Q> {
  readonly request: Request;
  readonly viewer: Viewer;
  readonly params: P;
  readonly query: Q;
}

type NoFields = z.ZodObject<Record<never, z.ZodType>>;

const NO_FIELDS = z.object({});

const viewerOf = ({ viewer }: Visit): Viewer => {
  if (viewer === null) throw new Error("a page for users was served to a visitor");
  return viewer;
};

const outcomeOf = (served: View | Response, form?: FormState): Outcome | Response => {
  if (served instanceof Response) return served;
  return form === undefined ? { view: served } : { view: served, form };
};

/** A page for users of the account. */
export const page = <P extends z.ZodObject = NoFields, Q extends z.ZodObject = NoFields>(
  options: PageOptions<P, Q>,
  render: (input: PageInput<z.output<P>, z.output<Q>>) => View | Response | Promise<View | Response>,
): PageRoute => ({
  method: "GET",
  path: options.path,
  access: "member",
  async serve(visit) {
    const { request } = visit;
    const params = readPathOf(options.params, visit.params);
    const query = readQueryOf(options.query, request);
    return outcomeOf(await render({ request, viewer: viewerOf(visit), params, query }));
  },
});

interface ActionOptions<P extends z.ZodObject, F extends z.ZodObject> {
  readonly path: string;
  readonly params?: P;
  readonly form?: F;
  /** Largest form, in bytes. Default: 1 MiB. */
  readonly bytesMax?: number;
}

export interface ActionInput<P, F> {
  readonly request: Request;
  readonly done: Visit["done"];
  readonly viewer: Viewer;
  readonly params: P;
  readonly form: F;
}

/** Shows the page of a form again, with what was typed and what is wrong with it. */
interface Rerender<P> {
  readonly rerender: (input: {
    readonly request: Request;
    readonly viewer: Viewer;
    readonly params: P;
    /** What was sent, for a page that depends on it. */
    readonly values: FormState["values"];
  }) => View | Promise<View>;
}

/** A form for users of the account. The CSRF token is checked before it is served. */
export const formAction = <P extends z.ZodObject = NoFields, F extends z.ZodObject = NoFields>(
  options: ActionOptions<P, F>,
  perform: (input: ActionInput<z.output<P>, z.output<F>>) => View | Response | Promise<View | Response>,
  again?: Rerender<z.output<P>>,
): PageRoute => ({
  method: "POST",
  path: options.path,
  access: "member",
  async serve(visit) {
    const { request } = visit;
    const viewer = viewerOf(visit);
    const params = readPathOf(options.params, visit.params);
    const values = await readFormValues(visit, options.bytesMax);
    const rerender = again && ((): View | Promise<View> => again.rerender({ request, viewer, params, values }));
    return performForm({
      values,
      schema: options.form,
      path: visit.path,
      rerender,
      turn: visit.turn,
      perform: (form: z.output<F>) => perform({ request, done: visit.done, viewer, params, form }),
    });
  },
});

/** An upload: the handler reads the body from the request, so the CSRF token is in the query. */
export const uploadAction = <P extends z.ZodObject = NoFields>(
  options: Omit<ActionOptions<P, NoFields>, "form" | "bytesMax">,
  perform: (input: Omit<ActionInput<z.output<P>, never>, "form">) => View | Response | Promise<View | Response>,
  again?: Rerender<z.output<P>>,
): PageRoute => ({
  method: "POST",
  path: options.path,
  access: "member",
  async serve(visit) {
    const { request } = visit;
    const viewer = viewerOf(visit);
    const params = readPathOf(options.params, visit.params);
    requireUploadToken(visit);
    const rerender = again && ((): View | Promise<View> => again.rerender({ request, viewer, params, values: {} }));
    return performForm({
      values: {},
      schema: NO_FIELDS,
      path: visit.path,
      rerender,
      turn: visit.turn,
      perform: () => perform({ request, done: visit.done, viewer, params }),
    });
  },
});

export interface PublicInput<P, Q> {
  readonly visit: Visit;
  readonly params: P;
  readonly query: Q;
}

/** A page for anyone: sign-in, set-up links, links in mails. */
export const publicPage = <P extends z.ZodObject = NoFields, Q extends z.ZodObject = NoFields>(
  options: PageOptions<P, Q>,
  render: (input: PublicInput<z.output<P>, z.output<Q>>) => View | Response | Promise<View | Response>,
): PageRoute => ({
  method: "GET",
  path: options.path,
  access: "anyone",
  async serve(visit) {
    const params = readPathOf(options.params, visit.params);
    return outcomeOf(await render({ visit, params, query: readQueryOf(options.query, visit.request) }));
  },
});

/** A form for anyone, with the CSRF token of the visitor. */
export const publicAction = <P extends z.ZodObject = NoFields, F extends z.ZodObject = NoFields>(
  options: ActionOptions<P, F>,
  perform: (input: {
    readonly visit: Visit;
    readonly params: z.output<P>;
    readonly form: z.output<F>;
  }) => View | Response | Promise<View | Response>,
  rerender?: (input: {
    readonly visit: Visit;
    readonly params: z.output<P>;
    readonly values: FormState["values"];
  }) => View,
): PageRoute => ({
  method: "POST",
  path: options.path,
  access: "anyone",
  async serve(visit) {
    const params = readPathOf(options.params, visit.params);
    const values = await readFormValues(visit, options.bytesMax);
    return performForm({
      values,
      schema: options.form,
      path: visit.path,
      turn: visit.turn,
      rerender: rerender && (() => rerender({ visit, params, values })),
      perform: (form: z.output<F>) => perform({ visit, params, form }),
    });
  },
});
