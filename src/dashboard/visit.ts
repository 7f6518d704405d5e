import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { Caller } from "../foundation/http/guard.ts";
import { CSRF_FIELD } from "./cookies.ts";

/** The sections of the navigation. */
export type Section = "home" | "verify" | "lists" | "dmarc" | "blocklists" | "usage" | "webhooks" | "settings";

export type Role = "owner" | "member" | "viewer";

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
  /** Without the frame, scripts and cookies: for people who have nothing but a link. */
  readonly isBare?: boolean;
  /** Default: 200. */
  readonly status?: number;
  /** Of a form's view: it has a secret, so the form redirects to it, and it is shown a single time. */
  readonly isShownOnce?: boolean;
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

/** What components need to know of the page that they are on. */
export interface PageFacts {
  readonly csrfToken: string;
  readonly timeZone: string;
  readonly nowMs: number;
  /** The path with its query, as in the address bar. */
  readonly url: string;
  /** Set when a form is shown again. */
  readonly form: FormState | null;
  /** How often each id of a field was used on the page so far. */
  readonly fieldIds: Map<string, number>;
  /** Whether the role of the visitor may send a form with this `action`. */
  may(action: string): boolean;
  /** The same of a page, by its path without the prefix of test mode. */
  mayOpen(path: string): boolean;
  href(path: string): string;
  /** Whether the service serves its manual. */
  readonly hasManual: boolean;
}

const OUTSIDE: PageFacts = {
  csrfToken: "",
  timeZone: "UTC",
  nowMs: 0,
  url: "/",
  form: null,
  fieldIds: new Map(),
  may: () => true,
  mayOpen: () => true,
  href: (path) => path,
  hasManual: true,
};

export const PageContext = createContext<PageFacts>(OUTSIDE);

/** The facts of the page that is being rendered. */
export const usePage = (): PageFacts => useContext(PageContext);

/** The URL of an upload form: its body is a stream, so the token is in the query. */
export const uploadPath = (path: string, { csrfToken }: Pick<PageFacts, "csrfToken">): string =>
  `${path}${path.includes("?") ? "&" : "?"}${CSRF_FIELD}=${csrfToken}`;

/** The `action` of the form around a field, so that a page with several forms shows each its own errors. */
export const FormContext = createContext<string>("");

/** What was typed into a field, and what is wrong with it, when its form is shown again. */
export const useField = (
  name: string,
): { readonly value: string | readonly string[] | undefined; readonly error?: string } => {
  const action = useContext(FormContext);
  const { form } = usePage();
  if (form === null || form.action !== action) return { value: undefined };
  const error = form.errors[name];
  return { value: form.values[name], ...(error === undefined ? {} : { error }) };
};
