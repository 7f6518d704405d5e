import type { SourceIdentity } from "./source-identity.ts";
import { type KeyedSource, UNRELATED_SUFFIX } from "./source-keys.ts";
import type { Classification } from "./rollup-store.ts";
import { sumTotals, type Totals } from "./totals.ts";
import { UNAUTHENTICATED_KEY } from "./unauthenticated-mail.ts";

/** Everything that a source other than unauthenticated mail is classified by. */
export interface SourceFacts extends Pick<Totals, "messages" | "aligned" | "forwarded" | "authenticated"> {
  readonly identity: Pick<SourceIdentity, "kind" | "service">;
  /** Aligned messages that were signed by another sender for the domain and relayed from here: see `findRelayed`. */
  readonly relayed: number;
  /** Whether trusted reports name it. The counts are theirs alone then, because anybody can send a report about anything. */
  readonly isVouched: boolean;
  /** Whether an envelope domain has the name of a mailing list host: `lists.example.org`. */
  readonly isList: boolean;
  /** Mail of a mailbox provider or gateway that cannot be attributed to the domain's own account there. */
  readonly isUnrelated: boolean;
}

/** Why a source has its class: see the rules of `judgeMembers`. */
export type ClassificationReason =
  | "unauthenticated"
  | "service_forwards"
  | "forwarding"
  | "untrusted_reports"
  | "aligned"
  | "own_server"
  | "unrelated"
  | "partly_aligned"
  | "authenticated_as_other"
  | "nothing_known";

/** The automatic class of a source, and why. */
export interface JudgedSource {
  readonly classification: Classification;
  readonly reason: ClassificationReason;
}

/** At this share of aligned mail a source is meant to send. */
const AUTHORIZED_SHARE = 0.9;
/** Below this share, alignment may be chance. */
const MIXED_SHARE = 0.1;
/** Receivers do not recognize all forwarded mail; this share of the failing mail shows a forwarder. */
const FORWARDED_SHARE = 0.1;

/**
 * The class of the stored sources that are shown under one key, and why, by the first rule that applies:
 *
 * 1. threat: all of its mail is unauthenticated, from addresses without a proper reverse name (`findUnauthenticated`).
 *    While those names are still being looked up, rule 6 applies.
 * 2. forwarder: it is a service that only forwards; or at least half of its aligned mail was signed elsewhere, or receivers
 *    recognize its mail as forwarded, or its envelope domain is a mailing list. Never a service that sends for customers.
 * 3. unknown: an organization or network that only untrusted reports name.
 * 4. authorized: at least 90 % of its mail is aligned.
 * 5. misconfigured: it is the domain's own server; or at least 10 % of its mail is aligned; or it is a service that sends for
 *    customers, or the domain's mailbox provider, and half of its failing mail is authenticated as somebody else's.
 * 6. unknown: everything else, because a user's own forgotten server fails exactly as a stranger's does.
 *
 * A classification by the user overrides all of these (`user-classification.ts`, `domains/source-rules.ts`).
 */
export const judgeMembers = (key: string, members: readonly KeyedSource[]): JudgedSource => {
  const [first] = members;
  if (first === undefined) return judged("unknown", "nothing_known");
  const active = members.filter(({ totals }) => totals.messages > 0);
  const isUnauthenticated = active.every((member) => member.unauthenticatedKey === UNAUTHENTICATED_KEY);
  if (active.length > 0 && isUnauthenticated) return judged("threat", "unauthenticated");
  return judgeSource(factsOfSource(key, first, members));
};

const judged = (classification: Classification, reason: ClassificationReason): JudgedSource => ({
  classification,
  reason,
});

/** Rules 2 to 6. */
export const classifySource = (facts: SourceFacts): Classification => judgeSource(facts).classification;

const judgeSource = (facts: SourceFacts): JudgedSource => {
  const { messages, aligned, authenticated, identity, isVouched, isUnrelated } = facts;
  const { service } = identity;
  const failing = messages - aligned;
  const share = messages === 0 ? 0 : aligned / messages;
  const sendsForCustomers = service?.kind === "bulk sender" || service?.kind === "business";
  if (service?.forwards === true && messages > 0) return judged("forwarder", "service_forwards");
  if (!sendsForCustomers && identity.kind !== "own" && isForwarding(facts)) return judged("forwarder", "forwarding");
  if (!isVouched && service === null && identity.kind !== "own") return judged("unknown", "untrusted_reports");
  if (share >= AUTHORIZED_SHARE) return judged("authorized", "aligned");
  if (identity.kind === "own") return judged(messages === 0 ? "authorized" : "misconfigured", "own_server");
  if (isUnrelated) return judged("unknown", "unrelated");
  if (share >= MIXED_SHARE) return judged("misconfigured", "partly_aligned");
  const isAuthenticated = failing > 0 && authenticated * 2 >= failing;
  return isAuthenticated && (sendsForCustomers || service?.kind === "mailbox provider")
    ? judged("misconfigured", "authenticated_as_other")
    : judged("unknown", "nothing_known");
};

const isForwarding = ({ messages, aligned, forwarded, authenticated, relayed, isList }: SourceFacts): boolean => {
  if (relayed > 0 && relayed * 2 >= aligned) return true;
  if (messages > 0 && aligned / messages >= AUTHORIZED_SHARE) return false;
  const failing = messages - aligned;
  const isRecognized = failing > 0 && forwarded > 0 && forwarded >= failing * FORWARDED_SHARE;
  return isRecognized || (isList && authenticated > 0);
};

/** Names of hosts that only serve mailing lists. */
const LIST_HOST = /(?:^|\.)(?:lists?|listes|listen|listserv|mailman|majordomo|sympa|googlegroups)\./;

const factsOfSource = (key: string, { identity }: KeyedSource, members: readonly KeyedSource[]): SourceFacts => {
  const isVouched = members.some(({ trusted }) => trusted.messages > 0);
  const countsOf = (member: KeyedSource): Totals => {
    const totals = isVouched ? member.trusted : member.totals;
    return member.isPlausible ? totals : { ...totals, aligned: 0 };
  };
  const sumOf = (some: readonly KeyedSource[]): Totals => sumTotals(some.map(countsOf));
  const { messages, aligned, forwarded, authenticated } = sumOf(members);
  return {
    ...{ identity, isVouched, messages, aligned, forwarded, authenticated },
    relayed: sumOf(members.filter(({ isRelayed }) => isRelayed)).aligned,
    isList: members.some(({ evidence }) => evidence.envelope !== null && LIST_HOST.test(evidence.envelope)),
    isUnrelated: key.endsWith(UNRELATED_SUFFIX),
  };
};
