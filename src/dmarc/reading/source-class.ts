import type { Classification, Totals } from "./reading-store.ts";
import type { Service } from "../services/services.ts";
import type { SourceKind } from "./source-view.ts";

/** What is known of the reverse names of a source's addresses, taken together. */
export type ReverseFinding =
  /** The DNS has not said yet, of one address at least. */
  | "unasked"
  /** The DNS says that no address has a name that leads back to it. */
  | "absent"
  /** Every name is one that providers give to customers at home. */
  | "generic"
  | "named";

/** Everything that a source is judged by. */
export interface SourceFacts extends Pick<Totals, "messages" | "aligned" | "forwarded" | "authenticated"> {
  readonly kind: SourceKind;
  readonly service: Service | null;
  /** Its signature, SPF domain or reverse name lies in the organisation of the monitored domain. */
  readonly isOwn: boolean;
  /** Mail with a signature or envelope of the domain's own came from one of its networks, too. */
  readonly isNearOwn: boolean;
  /**
   * By the word of reporters alone, aligned mail came from one of its networks, too; or it has a reverse name of the
   * domain's own that does not lead back. Both can be made up: they only keep it from being a threat.
   */
  readonly isSpokenFor: boolean;
  /** It came within three days, and reports of seven later days tell nothing of it: see `isThreat`. */
  readonly isBurst: boolean;
  readonly reverse: ReverseFinding;
}

/** From this share of aligned messages on, whoever sends them is meant to. */
const AUTHORIZED_SHARE = 0.9;
/** Below it, what is aligned may be chance. */
const MIXED_SHARE = 0.1;

/**
 * What a source is, as far as reports and reverse names tell. Silence is `unknown`: a user's own forgotten server fails
 * exactly as a stranger's does, so what is left out of the advice, `forwarder` and `threat`, needs every sign.
 *
 * - authorized: an aligned signature, for which the key stands in the domain's own DNS (unless the policy wants a
 *   stricter one, so that next to nothing is aligned); or nearly all is aligned, and more than the reporters' word
 *   speaks for it (see `isVouched`).
 * - misconfigured: it is the domain's own; or some is aligned, and more than the reporters' word speaks for it; or a
 *   sending service proves its own name, not the domain's.
 * - forwarder: most of what fails was passed on, by the receivers' own word. What comes from a mailbox provider without
 *   it may be the user's own mail, or any customer's. Hosts and hosters never: own websites send from there.
 * - threat: see `isThreat`.
 */
export const classifySource = (given: SourceFacts): Classification => {
  const facts = { ...given, service: speakingService(given) };
  const { kind, messages, aligned, forwarded, authenticated, service, isOwn } = facts;
  const failing = messages - aligned;
  const share = messages === 0 ? 0 : aligned / messages;
  const isMixed = share >= MIXED_SHARE;
  if (isOwn) {
    const isKnown = kind === "dkim" || kind === "spf";
    if (share >= AUTHORIZED_SHARE || (kind === "dkim" && isMixed)) return "authorized";
    return isKnown && messages === 0 ? "authorized" : "misconfigured";
  }
  if (share >= AUTHORIZED_SHARE && isVouched(facts)) return "authorized";
  if (forwarded * 2 > failing && service?.kind !== "hosting") return "forwarder";
  const isProven = failing > 0 && authenticated * 2 >= failing;
  if ((isMixed && isVouched(facts)) || (isProven && sendsForCustomers(service))) return "misconfigured";
  return isThreat(facts) ? "threat" : "unknown";
};

/** A provider of mailboxes and of lines to the home does not speak for the homes. */
const speakingService = ({ service, reverse }: SourceFacts): Service | null =>
  reverse === "generic" && service?.kind === "mailbox provider" ? null : service;

const sendsForCustomers = (service: Service | null): boolean =>
  service?.kind === "bulk sender" || service?.kind === "business";

/**
 * Whether more than a reporter's word speaks for mail being aligned, which a made-up report gives as well: a service that
 * sends for others. Of addresses that prove nothing, for some reporters leave out what they checked, also any other
 * service that rents out no hosts, and mail of the domain's own from beside. A foreign envelope that passes SPF, or a
 * foreign signature, says that somebody else sent it.
 */
const isVouched = ({ kind, service, isNearOwn }: SourceFacts): boolean => {
  if (kind === "dkim") return false;
  if (sendsForCustomers(service)) return true;
  if (kind === "spf") return false;
  return isNearOwn || (service !== null && service.kind !== "hosting");
};

/**
 * Somebody who forged the domain, so surely that nothing waits for the user's word: nothing proves anything, nothing was
 * ever aligned or passed on, nothing of the domain's own comes from beside, its hosts have no name or one of a customer
 * at home, and it was a burst: first and last seen within three days, with reports of seven later days that tell nothing
 * of it. A server of the user's own in the office may have no name either, but it sends again within the week.
 */
const isThreat = (facts: SourceFacts): boolean =>
  facts.messages > 0 &&
  facts.aligned === 0 &&
  facts.forwarded === 0 &&
  facts.authenticated === 0 &&
  facts.service === null &&
  !facts.isNearOwn &&
  !facts.isSpokenFor &&
  facts.isBurst &&
  (facts.reverse === "absent" || facts.reverse === "generic");
