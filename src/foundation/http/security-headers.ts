/** A year (RFC 6797 §6.1.1). Subdomains are not included: other services of the operator may stand there. */
const STRICT_TRANSPORT_SECURITY = "max-age=31536000";

/** The same for everybody, without data of an account: browsers and proxies may keep it. */
const PUBLIC_PATH = /^\/(docs(\/[^/]*)?|openapi\.json)$/;

/**
 * Adds what every response needs against misuse by a browser or a proxy: it is not stored unless it says otherwise itself, and
 * its type is not guessed. Over HTTPS, the browser uses nothing else for this host from then on.
 */
export const addSecurityHeaders = (headers: Headers, path: string, isHttps: boolean): void => {
  if (!headers.has("x-content-type-options")) headers.set("x-content-type-options", "nosniff");
  if (!headers.has("cache-control") && !PUBLIC_PATH.test(path)) headers.set("cache-control", "no-store");
  if (isHttps) headers.set("strict-transport-security", STRICT_TRANSPORT_SECURITY);
};
