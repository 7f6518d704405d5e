import { equalInConstantTime, sha256 } from "../foundation/base/secrets.ts";
import { parametersOf } from "../foundation/http/body.ts";

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
