/** uri-host [":" port] of RFC 9110 §7.2, without the comma, which is how two Host fields read when they are joined. */
const HOST_FORM = /^[A-Za-z0-9\-._~%!$&'()*+;=:[\]]*$/;

/**
 * Whether a request has at most one Host field, in a form that may name a host (RFC 9112 §3.2). HTTP/1.0 needs none; that
 * HTTP/1.1 needs one is checked by the platform.
 */
export const hasUsableHost = (request: Request): boolean => HOST_FORM.test(request.headers.get("host") ?? "");

/**
 * The request with a URL of the form `http://host/path?query`, whatever the connection and its Host field are like.
 *
 * The router takes the path from the first slash after the seventh character. A URL of HTTPS has its second slash there,
 * and without a usable Host field the platform gives the bare target. The request stays the same object: the platform knows
 * its peer by it.
 */
export const withRoutableUrl = (request: Request): Request => {
  const { url } = request;
  if (url.startsWith("http://")) return request;
  const value = url.startsWith("https://") ? `http://${url.slice("https://".length)}` : `http://localhost${url}`;
  return Object.defineProperty(request, "url", { value });
};

/** The path of a request with a routable URL. */
export const pathOf = ({ url }: Request): string => {
  const start = url.indexOf("/", "http://".length);
  return start === -1 ? "/" : url.slice(start).replace(/[?#].*$/s, "");
};
