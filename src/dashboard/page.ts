import type { ComponentChildren } from "preact";
import { z } from "zod";
import type { KeyMode } from "../base/secrets.ts";
import type { Caller } from "../http/guard.ts";
import { performForm, readFormValues, readPathOf, readQueryOf, requireUploadToken } from "./form-input.ts";

/** The sections of the navigation. */
export type Section = "home" | "verify" | "lists" | "dmarc" | "blocklists" | "usage" | "webhooks" | "settings";

export type Role = "owner" | "member";

/** Who is signed in, and where: the account and the mode of the page. */
export interface Viewer {
  readonly user: { readonly id: string; readonly email: string; readonly role: Role; readonly isOperator: boolean };
  readonly account: { readonly id: string; readonly name: string };
  readonly mode: KeyMode;
  /** For the use cases: all scopes, `keyId` is `user:<id>`. */
  readonly caller: Caller;
  readonly sessionId: string;
  readonly csrfToken: string;
  /** A name of the IANA time zone database. */
  readonly timeZone: string;
  /** The path of a page in the viewer's mode: test pages begin with `/test`. */
  href(path: string): string;
}

/** What a form was sent with, and what is wrong with it, for the page that shows it again. */
export interface FormState {
  /** The `action` of the form, so that only its own fields show it. */
  readonly action: string;
  readonly values: Readonly<Record<string, string | readonly string[]>>;
  /** Field → what is wrong. */
  readonly errors: Readonly<Record<string, string>>;
  /** What is wrong with the whole form. */
  readonly message: string | null;
}

/** A page: its title and body; the frame is added around it. */
export interface View {
  readonly title: string;
  readonly section: Section | null;
  readonly body: ComponentChildren;
  /** Default: 200. */
  readonly status?: number;
  /** Such as Retry-After. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An entry of the audit log, where it is not what the route says. Never put a secret or an email address in. */
export interface FormEntry {
  /** What the form does, where it has several acts; null for nothing. */
  action?: string | null;
  /** Default: the first parameter of the path. */
  subject?: string;
  after?: Readonly<Record<string, unknown>>;
}

/** A request for a page, before its parameters are read. `viewer` is null on pages for anyone. */
export interface Visit {
  readonly request: Request;
  readonly params: unknown;
  readonly viewer: Viewer | null;
  /** The page in its own mode, without the prefix, with its parameters: the `action` of a form that posts here. */
  readonly path: string;
  /** What the audit log says of the form, set before it changes anything. */
  readonly done: FormEntry;
  /** Identifies a browser without a session; null with one. */
  readonly visitor: string | null;
  /** The token that forms of this visitor must send. */
  readonly csrfToken: string;
  /** Whether the browser came by HTTPS. */
  readonly isSecure: boolean;
  /** Resolves when the page may be read and rendered (`PageTurns`). */
  turn(): Promise<void>;
}

export interface Outcome {
  readonly view: View;
  /** Set when the page shows a form again. */
  readonly form?: FormState;
}

export type Access = "anyone" | Role | "operator";

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
  ...{ method: "GET", path: options.path, access: "member" },
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
  ...{ method: "POST", path: options.path, access: "member" },
  async serve(visit) {
    const { request } = visit;
    const viewer = viewerOf(visit);
    const params = readPathOf(options.params, visit.params);
    const values = await readFormValues(visit, options.bytesMax);
    const rerender = again && ((): View | Promise<View> => again.rerender({ request, viewer, params, values }));
    return performForm({
      ...{ values, schema: options.form, path: visit.path, rerender, turn: visit.turn },
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
  ...{ method: "POST", path: options.path, access: "member" },
  async serve(visit) {
    const { request } = visit;
    const viewer = viewerOf(visit);
    const params = readPathOf(options.params, visit.params);
    requireUploadToken(visit);
    const rerender = again && ((): View | Promise<View> => again.rerender({ request, viewer, params, values: {} }));
    return performForm({
      ...{ values: {}, schema: NO_FIELDS, path: visit.path, rerender, turn: visit.turn },
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
  ...{ method: "GET", path: options.path, access: "anyone" },
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
  ...{ method: "POST", path: options.path, access: "anyone" },
  async serve(visit) {
    const params = readPathOf(options.params, visit.params);
    const values = await readFormValues(visit, options.bytesMax);
    return performForm({
      ...{ values, schema: options.form, path: visit.path, turn: visit.turn },
      rerender: rerender && (() => rerender({ visit, params, values })),
      perform: (form: z.output<F>) => perform({ visit, params, form }),
    });
  },
});
