import { z } from "zod";
import {
  type Viewer,
  type FormState,
  type View,
  type Visit,
  type Outcome,
  type Access,
  CSRF_FIELD,
  csrfOfQuery,
  isCrossSite,
  isCsrfToken,
  isOwnPath,
  redirectToPath,
} from "./visit.ts";
import { targetOf } from "../foundation/http/request-target.ts";
import { AppError, ERROR_STATUS } from "../foundation/base/errors.ts";
import { readBytes, queryOf } from "../foundation/http/body.ts";
import { validationMessage } from "../foundation/http/validation-messages.ts";

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

const FORM_BYTES_MAX = 1024 * 1024;

type Values = FormState["values"];

/** Repeated fields of a form or query, such as checkboxes of one name. */
export const listOf = <S extends z.ZodType>(item: S) =>
  z.preprocess((given) => (given === undefined ? [] : Array.isArray(given) ? given : [given]), z.array(item));

/** A checkbox: true when it is ticked. */
export const flag = z
  .literal("on")
  .optional()
  .transform((given) => given === "on");

/** An optional text field: null when it is empty. */
export const optionalText = (charactersMax: number) =>
  z
    .string()
    .trim()
    .max(charactersMax)
    .default("")
    .transform((text) => (text === "" ? null : text));

/** The token of a form is missing or another visitor's: the session has changed, or another site has sent it. */
export class ForgedForm extends Error {}

/**
 * The fields of a form (`application/x-www-form-urlencoded`), in the turn of its visit; 413 above `bytesMax`. Throws
 * `ForgedForm` unless it has the visitor's CSRF token.
 */
export const readFormValues = async (
  { request, csrfToken, turn }: Pick<Visit, "request" | "csrfToken" | "turn">,
  bytesMax = FORM_BYTES_MAX,
): Promise<Values> => {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== undefined && type !== "application/x-www-form-urlencoded")
    throw new AppError("unsupported_media_type", { message: "Send this form as application/x-www-form-urlencoded." });
  const body = await readBytes(request, bytesMax);
  await turn();
  const fields = new URLSearchParams(new TextDecoder().decode(body));
  if (isCrossSite(request) || !isCsrfToken(fields.get(CSRF_FIELD), csrfToken)) throw new ForgedForm();
  fields.delete(CSRF_FIELD);
  const names = new Set(fields.keys());
  return Object.fromEntries(
    [...names].map((name) => {
      const given = fields.getAll(name);
      return [name, given.length === 1 ? (given[0] ?? "") : given];
    }),
  );
};

/** Throws `ForgedForm` unless the query of an upload has the visitor's CSRF token. */
export const requireUploadToken = ({ request, csrfToken }: Pick<Visit, "request" | "csrfToken">): void => {
  if (isCrossSite(request) || !isCsrfToken(csrfOfQuery(request), csrfToken)) throw new ForgedForm();
};

/** The query of a page. Parameters that do not fit count as absent, unknown ones are ignored. */
export const readQueryOf = <Q extends z.ZodObject>(schema: Q | undefined, request: Request): z.output<Q> => {
  // Without a schema, Q has no fields.
  if (schema === undefined) return {} as z.output<Q>;
  const given = queryOf(request);
  const kept = Object.fromEntries(
    Object.entries(schema.shape).flatMap(([name, field]) =>
      name in given && given[name] !== "" && z.safeParse(field, given[name]).success ? [[name, given[name]]] : [],
    ),
  );
  return schema.parse(kept);
};

/** The parameters of the path; 404 for a value that does not fit. */
export const readPathOf = <P extends z.ZodObject>(schema: P | undefined, params: unknown): z.output<P> => {
  // Without a schema, P has no fields.
  if (schema === undefined) return {} as z.output<P>;
  const read = schema.safeParse(params);
  if (!read.success) throw new AppError("not_found", { message: "There is no such page." });
  return read.data;
};

interface Form<F extends z.ZodObject> {
  readonly values: Values;
  readonly schema: F | undefined;
  /** The `action` of the form. */
  readonly path: string;
  /** Shows the form again; absent: an error page. */
  readonly rerender: (() => View | Promise<View>) | undefined;
  readonly perform: (form: z.output<F>) => View | Response | Promise<View | Response>;
  /** That of the visit. */
  readonly turn: Visit["turn"];
}

const tidyMessage = (text: string): string => `${text.replace(/(?<!\.)\.+$/, "")}.`;

const messageOf = (issue: z.core.$ZodIssue): string =>
  issue.code === "invalid_type" && issue.input === undefined ? "Required" : issue.message;

const errorsOf = (error: z.ZodError): Record<string, string> =>
  Object.fromEntries(
    error.issues.toReversed().map((issue) => [String(issue.path[0] ?? ""), tidyMessage(messageOf(issue))]),
  );

const attentionText = (fields: number): string =>
  fields === 1 ? "One field needs your attention." : `${fields} fields need your attention.`;

/** What an error of a use case says about the fields of a form: beside its field where the form has it, otherwise at the top of the page. */
const problemsOf = (
  { code, details }: AppError,
  hasField: (name: string) => boolean,
): Pick<FormState, "errors" | "message"> => {
  const issues = details.issues ?? [];
  const errors = Object.fromEntries(
    issues.toReversed().map(({ path, message }) => [path.split(".")[0] ?? "", tidyMessage(message)]),
  );
  const isBeside = issues.some(({ path, message }) => message === details.message && hasField(path));
  if (details.message !== undefined && !isBeside) return { errors, message: tidyMessage(details.message) };
  const elsewhere = issues.filter(({ path }) => !hasField(path.split(".")[0] ?? "")).map(({ message }) => message);
  const [first = issues.length === 0 ? code : attentionText(Object.keys(errors).length)] = elsewhere;
  return { errors, message: tidyMessage(first) };
};

const headersOf = ({ details: { headers } }: AppError): Pick<View, "headers"> =>
  headers === undefined ? {} : { headers };

const CLIENT_ERROR = 400;

/** Validates a form and performs it. The page shows an invalid form again with its errors. */
export const performForm = async <F extends z.ZodObject>(form: Form<F>): Promise<Outcome | Response> => {
  const { values, schema, path, rerender, perform, turn } = form;
  const again = async (
    { status, headers = {} }: Pick<View, "headers"> & { readonly status: number },
    problem: Pick<FormState, "errors" | "message">,
  ): Promise<Outcome> => {
    await turn();
    const shown = await rerender?.();
    if (shown === undefined) throw new Error("a form without a page was shown again");
    return { view: { ...shown, status, headers }, form: { action: path, values, ...problem } };
  };
  // Without a schema, F has no fields.
  const read = (schema ?? z.object({})).safeParse(values, {
    reportInput: true,
    error: (issue) => validationMessage(issue, false),
  });
  if (!read.success) {
    const errors = errorsOf(read.error);
    if (rerender !== undefined)
      return again({ status: CLIENT_ERROR }, { errors, message: attentionText(Object.keys(errors).length) });
    throw new AppError("Invalid request body", {
      message: Object.entries(errors)
        .map(([name, message]) => `${name}: ${message}`)
        .join(" "),
    });
  }
  try {
    // The output of the schema of the form.
    const served = await perform(read.data as z.output<F>);
    return served instanceof Response ? served : { view: served };
  } catch (error) {
    if (!(error instanceof AppError) || rerender === undefined || error.code === "not_found") throw error;
    return again(
      { status: ERROR_STATUS[error.code], ...headersOf(error) },
      problemsOf(error, (name) => schema !== undefined && name in schema.shape),
    );
  }
};

const SIGN_IN = "/sign-in";
const NOT_SENT = "You were signed out, so the form was not sent and nothing was changed. Sign in and send it again.";

/** The page with the form that a request sent, as its browser tells; the home page without one of this site. */
const pageOfForm = (request: Request): string => {
  const referer = URL.parse(request.headers.get("referer") ?? "");
  return referer === null || referer.host !== new URL(request.url).host ? "/" : referer.pathname + referer.search;
};

/** A page that was loaded by a script sends the whole browser to the sign-in. A form that was not sent is named there. */
export const toSignIn = (request: Request): Response => {
  const isForm = request.method !== "GET";
  const back = isForm ? pageOfForm(request) : targetOf(request);
  const next = back !== "/" && isOwnPath(back) ? `?next=${encodeURIComponent(back)}` : "";
  if (request.headers.get("hx-request") === null)
    return redirectToPath(`${SIGN_IN}${next}`, isForm ? { bad: NOT_SENT } : undefined);
  return new Response(null, { status: 204, headers: { "hx-redirect": SIGN_IN, "cache-control": "no-store" } });
};
