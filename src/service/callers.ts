import { readSessionToken } from "../accounts/session-cookie.ts";
import { networkKey } from "../foundation/base/cidr.ts";
import type { ClientAddresses } from "../foundation/http/client-addresses.ts";
import type { Service } from "./compose.ts";

/** Names for whom a request is, where the callers take turns; null when nothing is known of it. */
export type CallerOf = (request: Request) => string | null;

/**
 * Who takes turns while requests wait: the account of a valid key, the user of a session, and for all others the network of the
 * client. A mere claim counts for nothing: otherwise every forged header would have turns of its own.
 */
export const createCallers =
  (
    { accounts: { authenticate, sessions } }: Pick<Service, "accounts">,
    clients: Pick<ClientAddresses, "of">,
  ): CallerOf =>
  (request) => {
    const key = authenticate(request.headers.get("authorization"));
    if (key !== undefined && key !== "disabled") return key.accountId;
    for (const isSecure of [false, true]) {
      const session = sessions.find(readSessionToken(request, isSecure) ?? undefined, isSecure);
      if (session !== undefined) return session.user.id;
    }
    const address = clients.of(request);
    return address === null ? null : networkKey(address);
  };
