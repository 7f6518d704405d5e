import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createClientAddress } from "./client-address.ts";
import { pathOf } from "./request-target.ts";

/** What names the peer of a request: the server. */
type Peers = Pick<Bun.Server<unknown>, "requestIP">;

/**
 * Logs each request with its client, at log level debug only, because it costs time. `trustedProxies` are networks whose
 * X-Forwarded-For names the client.
 */
export const createRequestLog = (
  { log, clock }: { readonly log: Log; readonly clock: Clock },
  trustedProxies: readonly string[],
) => {
  let clientOf = createClientAddress(trustedProxies);
  return {
    trust(networks: readonly string[]): void {
      clientOf = createClientAddress(networks);
    },

    /** Notes a request; null when requests are not logged. Call the result with the response. */
    begin(request: Request, server: Peers | null): ((response: Response) => void) | null {
      if (!log.enabled("debug")) return null;
      // The runtime knows the peer only until the response is sent.
      const peer = server?.requestIP(request)?.address;
      const client = peer === undefined ? null : clientOf(peer, request.headers.get("x-forwarded-for"));
      const begunMs = clock.monotonicMs();
      return ({ status, headers }) =>
        log.debug("request", {
          method: request.method,
          path: pathOf(request),
          status,
          ms: Math.round(clock.monotonicMs() - begunMs),
          client,
          request_id: headers.get("x-request-id"),
        });
    },
  };
};
