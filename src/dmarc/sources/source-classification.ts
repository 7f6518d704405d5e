import type { Classification, Totals } from "./rollup-store.ts";
import type { SourceIdentity } from "./source-identity.ts";

/** Everything that a source is judged by. */
export interface SourceFacts extends Pick<Totals, "messages" | "aligned" | "forwarded" | "authenticated"> {
  readonly identity: Pick<SourceIdentity, "kind" | "service">;
  /** Messages that were signed by somebody else for the domain and handed in from here: see `findRelayed`. */
  readonly relayed: number;
  /** Whether trusted reports name it. The counts are theirs alone then, for anybody can send a report about anything. */
  readonly isVouched: boolean;
  /** Whether its envelope domain is named as mailing lists are: `lists.example.org`. */
  readonly isList: boolean;
  /** Mail of a mailbox provider or gateway that nothing connects with the domain's own account there. */
  readonly isOfOthers: boolean;
}

/** From this share of aligned messages on, whoever sends them is meant to. */
const AUTHORIZED_SHARE = 0.9;
/** Below it, what is aligned may be chance. */
const MIXED_SHARE = 0.1;
/** Receivers do not all recognize forwarded mail; so much of the failing mail is enough to tell a forwarder. */
const FORWARDED_SHARE = 0.1;

/**
 * What a source is, by rules that can be said aloud. The first that applies counts. Unauthenticated mail of addresses without a
 * proper name is judged before, as `threat`: see `unauthenticated-mail.ts`.
 *
 * 1. forwarder: most of its mail was signed elsewhere, or receivers say that it forwards, or its envelope
 *    domain is one of mailing lists. Never a service that sends for customers. A service that does nothing but forward always is one.
 * 2. unknown: an organization or network that only reports name which are not trusted.
 * 3. authorized: nearly all of its mail is aligned.
 * 4. misconfigured: it is the domain's own server; or some of its mail is aligned; or it is a service that sends for customers, and
 *    its mail is authenticated as the service's.
 * 5. unknown: all else. A user's own forgotten server fails exactly as a stranger's does.
 */
export const classifySource = (facts: SourceFacts): Classification => {
  const { messages, aligned, forwarded, authenticated, relayed, identity, isVouched, isList, isOfOthers } = facts;
  const failing = messages - aligned;
  const share = messages === 0 ? 0 : aligned / messages;
  if (identity.service?.forwards === true && messages > 0) return "forwarder";
  const sends = sendsForCustomers(identity);
  if (!sends && identity.kind !== "own") {
    if (relayed > 0 && relayed * 2 >= aligned) return "forwarder";
    if (failing > 0 && forwarded > 0 && forwarded >= failing * FORWARDED_SHARE && share < AUTHORIZED_SHARE)
      return "forwarder";
    if (isList && authenticated > 0 && share < AUTHORIZED_SHARE) return "forwarder";
  }
  if (!isVouched && identity.service === null && identity.kind !== "own") return "unknown";
  if (share >= AUTHORIZED_SHARE) return "authorized";
  if (identity.kind === "own") return messages === 0 ? "authorized" : "misconfigured";
  if (isOfOthers) return "unknown";
  if (share >= MIXED_SHARE) return "misconfigured";
  const isProven = failing > 0 && authenticated * 2 >= failing;
  return isProven && (sends || identity.service?.kind === "mailbox provider") ? "misconfigured" : "unknown";
};

const sendsForCustomers = ({ service }: Pick<SourceIdentity, "service">): boolean =>
  service?.kind === "bulk sender" || service?.kind === "business";
