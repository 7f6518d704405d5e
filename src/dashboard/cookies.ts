import { isTimeZone } from "../foundation/base/days.ts";
import { equalInConstantTime, sha256 } from "../foundation/base/secrets.ts";
import { parametersOf } from "../foundation/http/body.ts";

/** The value of a cookie of a request; null without it. */
export const readCookie = (request: Request, name: string): string | null => {
  for (const pair of (request.headers.get("cookie") ?? "").split(";")) {
    const at = pair.indexOf("=");
    if (at !== -1 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
};

/** RFC 6265bis §4.1.3.2: a cookie with this prefix can only be set by this host, over HTTPS. */
const nameOf = (name: string, isSecure: boolean): string => (isSecure ? `__Host-${name}` : name);

const SESSION_NAME = "pw_session";

/** The session token of a request; null without one. */
export const readSessionToken = (request: Request, isSecure: boolean): string | null =>
  readCookie(request, nameOf(SESSION_NAME, isSecure));

/** The `Set-Cookie` value that keeps a session token for `seconds`; 0 removes it. */
export const sessionCookie = (token: string, { isSecure, seconds }: { isSecure: boolean; seconds: number }): string =>
  `${nameOf(SESSION_NAME, isSecure)}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${isSecure ? "; Secure" : ""}`;

const VISITOR_NAME = "pw_visitor";
const VISITOR_FORM = /^[0-9a-f]{32}$/;

/** The random text that identifies a browser without a session, for the CSRF token of its forms; null without one. */
export const readVisitor = (request: Request, isSecure: boolean): string | null => {
  const value = readCookie(request, nameOf(VISITOR_NAME, isSecure));
  return value !== null && VISITOR_FORM.test(value) ? value : null;
};

export const visitorCookie = (visitor: string, isSecure: boolean): string =>
  `${nameOf(VISITOR_NAME, isSecure)}=${visitor}; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;

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
