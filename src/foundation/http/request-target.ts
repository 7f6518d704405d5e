/** uri-host [":" port] of RFC 9110 §7.2, without the comma: two Host fields are joined by one. */
const HOST_FORM = /^[A-Za-z0-9\-._~%!$&'()*+;=:[\]]*$/;

/**
 * Whether a request has at most one well-formed Host field (RFC 9112 §3.2). HTTP/1.0 needs none; the runtime checks that
 * HTTP/1.1 has one.
 */
export const hasUsableHost = (request: Request): boolean => HOST_FORM.test(request.headers.get("host") ?? "");

/**
 * Gives the request a URL of the form `http://host/path?query`, for any connection and Host field.
 *
 * The router takes the path from the first slash after the seventh character. An HTTPS URL has its second slash there, and
 * without a usable Host field the runtime gives the bare target. The request stays the same object, by which the runtime knows
 * its peer.
 */
export const withRoutableUrl = (request: Request): Request => {
  const { url } = request;
  if (url.startsWith("http://")) return request;
  const value = url.startsWith("https://") ? `http://${url.slice("https://".length)}` : `http://localhost${url}`;
  return Object.defineProperty(request, "url", { value });
};

/** Path and query of a request with a routable URL, as in the address bar. */
export const targetOf = ({ url }: Request): string => url.slice(url.indexOf("/", "http://".length));

/** The path of a request with a routable URL. */
export const pathOf = ({ url }: Request): string => {
  const start = url.indexOf("/", "http://".length);
  return start === -1 ? "/" : url.slice(start).replace(/[?#].*$/s, "");
};

/** A host as links may have it: a name or an address, and a port. */
const LINK_HOST = /^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** Whether a proxy says that the client came by HTTPS. */
export const isForwardedHttps = (request: Request): boolean =>
  request.headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim() === "https";

/** Returns the URL under which the client of a request reaches the service, without a slash at its end. */
export type UrlOfRequest = (request: Request) => string;

/**
 * The reader of that URL: `url` where it is set, otherwise the host of the request, which only the client itself may be shown. A
 * request without a usable host gets `listensOn`, the URL that the service listens on.
 */
export const createUrlOfRequest =
  (url: string | null, listensOn: string): UrlOfRequest =>
  (request) => {
    if (url !== null) return url;
    const [, , host = ""] = request.url.split("/", 3);
    if (!LINK_HOST.test(host)) return listensOn;
    return `${listensOn.startsWith("https:") || isForwardedHttps(request) ? "https" : "http"}://${host}`;
  };
