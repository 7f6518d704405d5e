import type { Classification, Totals } from "./reading-store.ts";
import type { Service } from "./services.ts";
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
  /** Its SPF domain or reverse name lies in the organisation of the monitored domain. */
  readonly isOwn: boolean;
  /** Mail that is aligned came from one of its networks, too. */
  readonly isNearAligned: boolean;
  readonly reverse: ReverseFinding;
}

/** From this share of aligned messages on, whoever sends them is meant to. */
const AUTHORIZED_SHARE = 0.9;
/** Below it, what is aligned may be chance. */
const MIXED_SHARE = 0.1;

/**
 * What a source is, as far as reports and reverse names tell. Silence is `unknown`: a user's own forgotten server fails
 * exactly as a stranger's does, so `threat` needs every sign.
 *
 * - authorized: an aligned signature, for which the key stands in the domain's own DNS (unless the policy wants a
 *   stricter one, so that next to nothing is aligned); or nearly all is aligned.
 * - forwarder: most of what fails was passed on, by the receivers' own word; or it comes without any proof from a service
 *   that forwards its users' mail.
 * - misconfigured: some is aligned; or it is the domain's own host; or a service proves its own name, not the domain's.
 * - threat: nothing proves anything, nothing was ever aligned or passed on, and its hosts have no name or one of a
 *   customer at home.
 */
export const classifySource = (facts: SourceFacts): Classification => {
  const { kind, messages, aligned, forwarded, authenticated, service, isOwn } = facts;
  const failing = messages - aligned;
  const share = messages === 0 ? 0 : aligned / messages;
  if (share >= AUTHORIZED_SHARE || (kind === "dkim" && (messages === 0 || share >= MIXED_SHARE))) return "authorized";
  if (forwarded > 0 && forwarded * 2 >= failing) return "forwarder";
  if (isOwn || share >= MIXED_SHARE) return "misconfigured";
  const isProven = failing > 0 && authenticated * 2 >= failing;
  if (service?.forwards === true && (kind === "spf" || !isProven)) return "forwarder";
  if (service !== null && isProven) return "misconfigured";
  return isThreat(facts) ? "threat" : "unknown";
};

const isThreat = ({
  messages,
  aligned,
  forwarded,
  authenticated,
  service,
  isNearAligned,
  reverse,
}: SourceFacts): boolean =>
  messages > 0 &&
  aligned === 0 &&
  forwarded === 0 &&
  authenticated === 0 &&
  service === null &&
  !isNearAligned &&
  (reverse === "absent" || reverse === "generic");
