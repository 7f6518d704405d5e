/** The value of a cookie of a request; null without it. */
export const readCookie = (request: Request, name: string): string | null => {
  for (const pair of (request.headers.get("cookie") ?? "").split(";")) {
    const at = pair.indexOf("=");
    if (at !== -1 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
};

/** RFC 6265bis §4.1.3.2: a cookie with this prefix can only be set by this host, over HTTPS. */
export const cookieNameOf = (name: string, isSecure: boolean): string => (isSecure ? `__Host-${name}` : name);

const SESSION_NAME = "pw_session";

/** The session token of a request; null without one. */
export const readSessionToken = (request: Request, isSecure: boolean): string | null =>
  readCookie(request, cookieNameOf(SESSION_NAME, isSecure));

/** The `Set-Cookie` value that keeps a session token for `seconds`; 0 removes it. */
export const sessionCookie = (token: string, { isSecure, seconds }: { isSecure: boolean; seconds: number }): string =>
  `${cookieNameOf(SESSION_NAME, isSecure)}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${isSecure ? "; Secure" : ""}`;
