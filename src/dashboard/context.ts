import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { CSRF_FIELD } from "./csrf.ts";
import type { FormState } from "./visit.ts";

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
