import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ClientAddresses } from "./client-addresses.ts";
import { pathOf } from "./request-target.ts";
import { newId } from "../base/secrets.ts";

/** Paths that hold a secret are cut before it. */
const withoutSecret = (path: string) => path.replace(/^((?:\/test)?\/setup\/).+$/s, "$1…");

/** The path of a request as logs name it. */
export const loggedPath = (request: Request): string => withoutSecret(pathOf(request));

/** Logs each request with its client, at log level debug only, because it costs time. */
export const createRequestLog = (
  { log, clock }: { readonly log: Log; readonly clock: Clock },
  clients: Pick<ClientAddresses, "of">,
) => ({
  /** Notes a request; null when requests are not logged. Call the result with the response. */
  begin(request: Request): ((response: Response) => void) | null {
    if (!log.enabled("debug")) return null;
    const client = clients.of(request);
    const begunMs = clock.monotonicMs();
    return ({ status, headers }) =>
      log.debug("request", {
        method: request.method,
        path: loggedPath(request),
        status,
        ms: Math.round(clock.monotonicMs() - begunMs),
        client,
        request_id: headers.get("x-request-id"),
      });
  },
});

const REQUEST_ID_FORM = /^[A-Za-z0-9._-]{1,64}$/;

/** The `X-Request-Id` of a response: that of the request if it is well-formed, else a new one. */
export const requestIdOf = (request: Request): string => {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID_FORM.test(given) ? given : newId();
};
