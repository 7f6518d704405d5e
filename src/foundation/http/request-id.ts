import { newId } from "../base/secrets.ts";

const REQUEST_ID_FORM = /^[A-Za-z0-9._-]{1,64}$/;

/** The `X-Request-Id` of a response: that of the request if it is well-formed, else a new one. */
export const requestIdOf = (request: Request): string => {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID_FORM.test(given) ? given : newId();
};
