import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import { cookieNameOf, readCookie } from "../accounts/session-cookie.ts";
import { type KeyMode, equalInConstantTime, sha256 } from "../foundation/base/secrets.ts";
import type { Caller } from "../foundation/http/guard.ts";
import { isTimeZone } from "../foundation/base/days.ts";
import { parametersOf } from "../foundation/http/body.ts";
import { z } from "zod";
import { type Clock, nextTurn } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { FairQueue } from "../foundation/base/fair-queue.ts";
import { type OnBehalfOf, createShares } from "../foundation/base/on-behalf-of.ts";
import { wait } from "../foundation/base/wait.ts";

const VISITOR_NAME = "pw_visitor";
const VISITOR_FORM = /^[0-9a-f]{32}$/;

/** The random text that identifies a browser without a session, for the CSRF token of its forms; null without one. */
export const readVisitor = (request: Request, isSecure: boolean): string | null => {
  const value = readCookie(request, cookieNameOf(VISITOR_NAME, isSecure));
  return value !== null && VISITOR_FORM.test(value) ? value : null;
};

export const visitorCookie = (visitor: string, isSecure: boolean): string =>
  `${cookieNameOf(VISITOR_NAME, isSecure)}=${visitor}; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;

const ZONE_NAME = "pw_zone";

/** The time zone that the browser's script has stored; `UTC` without one. */
export const readTimeZone = (request: Request): string => {
  const given = decodeURIComponentOr(readCookie(request, ZONE_NAME) ?? "", "");
  return given !== "" && given.length <= 64 && isTimeZone(given) ? given : "UTC";
};

const decodeURIComponentOr = (text: string, otherwise: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return otherwise;
  }
};

const THEME_NAME = "pw_theme";
export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** The colour scheme that the visitor has chosen; `auto` follows the system. */
export const readTheme = (request: Request): Theme => {
  const given = readCookie(request, THEME_NAME);
  return THEMES.find((theme) => theme === given) ?? "auto";
};

const YEAR_S = 365 * 24 * 60 * 60;

export const themeCookie = (theme: Theme): string => `${THEME_NAME}=${theme}; Path=/; SameSite=Lax; Max-Age=${YEAR_S}`;

/** The field of a form, and the query parameter of an upload, that carries the token. */
export const CSRF_FIELD = "_csrf";

/** The token of a browser without a session. */
export const visitorToken = (visitor: string): string => sha256(`csrf ${visitor}`);

/** Whether the browser says that another site has sent the request. Browsers without the header are decided by the token. */
export const isCrossSite = (request: Request): boolean => {
  const site = request.headers.get("sec-fetch-site");
  return site !== null && site !== "same-origin" && site !== "none";
};

/** Whether a token that was sent is the visitor's. */
export const isCsrfToken = (given: string | null, expected: string): boolean =>
  given !== null && equalInConstantTime(given, expected);

/** The token in the query of an upload, whose body is a stream. */
export const csrfOfQuery = (request: Request): string | null => parametersOf(request).get(CSRF_FIELD);

/** The sections of the navigation. */
export type Section = "home" | "verify" | "lists" | "dmarc" | "blocklists" | "usage" | "webhooks" | "settings";

/** How many things need attention in a section, and whether one of them is a failure. */
export interface SectionCount {
  readonly count: number;
  readonly isUrgent: boolean;
}

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

export type Access = "anyone" | Role | "operator" | "owner or operator";

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
  /** What the service is called. */
  readonly brandName: string;
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
  brandName: "Postwarden",
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

const SEE_OTHER = 303;

/** Sends the browser to a page of the viewer's mode, with a message for it. */
export const redirectTo = (viewer: Pick<Viewer, "href">, path: string, flash?: Flash): Response =>
  redirectToPath(viewer.href(path), flash);

/** The same for a path that has its prefix already. `cookies` are further `Set-Cookie` values. */
export const redirectToPath = (path: string, flash?: Flash, cookies: readonly string[] = []): Response => {
  const headers = new Headers({ location: path, "cache-control": "no-store" });
  for (const cookie of [...cookies, ...(flash === undefined ? [] : [flashCookie(flash)])])
    headers.append("set-cookie", cookie);
  return new Response(null, { status: SEE_OTHER, headers });
};

/** Whether a text is a path of this site: a target that a link may send somebody to after signing in. */
export const isOwnPath = (text: string): boolean => /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text);

/** A message for the next page: what was done, or why not. */
export type Flash = { readonly ok: string } | { readonly bad: string };

const FLASH_COOKIE = "pw_flash";
const FLASH_CHARACTERS_MAX = 600;
const FLASH_SECONDS = 60;

const flashSchema = z.union([z.object({ ok: z.string() }), z.object({ bad: z.string() })]);

const cut = (text: string): string =>
  text.length > FLASH_CHARACTERS_MAX ? `${text.slice(0, FLASH_CHARACTERS_MAX)}…` : text;

/** The `Set-Cookie` value that carries a message across a redirect. */
const flashCookie = (flash: Flash): string => {
  const short = "ok" in flash ? { ok: cut(flash.ok) } : { bad: cut(flash.bad) };
  const value = Buffer.from(JSON.stringify(short)).toString("base64url");
  return `${FLASH_COOKIE}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${FLASH_SECONDS}`;
};

/** The message that a request carries; null without one. */
export const readFlash = (request: Request): Flash | null => {
  const value = readCookie(request, FLASH_COOKIE);
  return value === null ? null : decode(value);
};

/** Whether a response carries the message that something was not done. */
export const isRefusal = ({ headers }: Response): boolean =>
  headers.getSetCookie().some((cookie) => {
    const [pair = ""] = cookie.split(";", 1);
    const value = pair.startsWith(`${FLASH_COOKIE}=`) ? pair.slice(FLASH_COOKIE.length + 1) : undefined;
    const flash = value === undefined ? null : decode(value);
    return flash !== null && "bad" in flash;
  });

const decode = (value: string): Flash | null => {
  try {
    return flashSchema.parse(JSON.parse(Buffer.from(value, "base64url").toString()));
  } catch {
    // Not one of ours: the visitor's own cookie, shown to nobody else.
    return null;
  }
};

/** Removes the message: it was shown. */
export const CLEAR_FLASH = `${FLASH_COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`;

/** Requests that wait; those of one caller may take four fifths of these places. */
const WAITING_MAX = 1_000;
const RETRY_S = 5;
/** A shorter rest is not worth a timer. */
const REST_MS_MIN = 1;
/** The longest rest: what holds a turn for longer is not the page alone. */
const REST_MS_MAX = 50;

interface Waiting {
  readonly request: Request;
  readonly begin: () => void;
}

/**
 * Pages hold the event loop for milliseconds each, so they are read and rendered one in a turn of it, the callers in turn.
 * While others wait, they take at most half of the time: a check of an address needs a dozen turns.
 */
export class PageTurns {
  readonly #queue = new FairQueue<Waiting>();
  readonly #places = createShares({ placesMax: WAITING_MAX, realtimeShare: 0 });
  /** Whose turn of the event loop it is. */
  #holder: Request | null = null;
  #isTaken: boolean = false;
  /** Requests that had a turn: what they have done must not end in a refusal. */
  readonly #admitted = new WeakSet<Request>();

  constructor(private readonly clock: Clock) {}

  /**
   * Resolves when the request may hold the event loop until it next waits for something; at once if it still has its turn.
   * 503 at its first turn when too many of this caller wait; an `AbortError` when the client has disconnected meanwhile. `caller`: an account,
   * or the network of a visitor.
   */
  async enter(request: Request, caller: string): Promise<void> {
    if (this.#holder === request) return;
    if (this.#isTaken) await this.#waitForTurn(request, caller);
    else this.#begin(request);
  }

  #begin(request: Request): void {
    this.#isTaken = true;
    this.#holder = request;
    this.#admitted.add(request);
    void this.#handOn();
  }

  async #waitForTurn(request: Request, caller: string): Promise<void> {
    const who: OnBehalfOf = { account: caller, priority: "realtime" };
    if (!this.#admitted.has(request) && !this.#places.mayHold(who)) throw tooMany();
    this.#places.hold(who);
    await new Promise<void>((begin) => this.#queue.add(who, { request, begin }));
    this.#admitted.add(request);
    if (request.signal.aborted) throw new DOMException("The client disconnected", "AbortError");
  }

  /** Gives one request after another its turn, until none waits. */
  async #handOn(): Promise<void> {
    for (;;) {
      const begunMs = this.clock.monotonicMs();
      await nextTurn();
      this.#holder = null;
      if (this.#queue.isEmpty()) break;
      const restMs = Math.min(REST_MS_MAX, this.clock.monotonicMs() - begunMs);
      if (restMs >= REST_MS_MIN) await wait(this.clock, restMs);
      const next = this.#queue.take();
      if (next === undefined) break;
      this.#places.release(next.who);
      this.#holder = next.item.request;
      next.item.begin();
    }
    this.#isTaken = false;
  }
}

const tooMany = (): AppError =>
  new AppError("unavailable", {
    message: "Too many pages are requested at the same time. Try again later.",
    headers: { "retry-after": String(RETRY_S) },
  });
