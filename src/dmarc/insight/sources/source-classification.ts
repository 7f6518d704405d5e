import {
  organisationOf,
  type IdentifiedSource,
  type SourceIdentities,
  type SourceIdentity,
} from "./source-identity.ts";
import { type KeyedSource, UNAUTHENTICATED_KEY } from "./source-keys.ts";
import type { Classification, UserClassification } from "./rollup-store.ts";
import { isRecognizedForwarding, sumTotals, type SourceAddress, type Totals } from "./rollup-rows.ts";
import { isLegacyKey, entryOf } from "../../reports/ingest/rollup.ts";
import type { ServiceKind } from "../../records/services/services.ts";
import { ipNetworkOf } from "../addresses/address-store.ts";

/** Everything that a source other than unauthenticated mail is classified by. */
export interface SourceFacts extends Pick<Totals, "messages" | "aligned" | "forwarded" | "authenticated"> {
  readonly identity: Pick<SourceIdentity, "kind" | "service">;
  /** Aligned messages that were signed by another sender for the domain and relayed from here: see `findRelayed`. */
  readonly relayed: number;
  /** Whether trusted reports name it. The counts are theirs alone then, because anybody can send a report about anything. */
  readonly isVouched: boolean;
  /** Whether an envelope domain has the name of a mailing list host: `lists.example.org`. */
  readonly isList: boolean;
  /** Mail of a shared service that cannot be attributed to the domain's own account there. */
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
interface JudgedSource {
  readonly classification: Classification;
  readonly reason: ClassificationReason;
}

/** At this share of aligned mail a source is meant to send. */
const AUTHORIZED_SHARE = 0.9;
/** Below this share, alignment may be chance. */
const MIXED_SHARE = 0.1;

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
 * A classification by the user overrides all of these (`userClassificationOf`, `domains/source-rules.ts`).
 */
export const judgeMembers = (members: readonly KeyedSource[]): JudgedSource => {
  const [first] = members;
  if (first === undefined) return judged("unknown", "nothing_known");
  const active = members.filter(({ totals }) => totals.messages > 0);
  const isUnauthenticated = active.every((member) => member.unauthenticatedKey === UNAUTHENTICATED_KEY);
  if (active.length > 0 && isUnauthenticated) return judged("threat", "unauthenticated");
  return judgeSource(factsOfSource(first, members));
};

const judged = (classification: Classification, reason: ClassificationReason) => ({
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

const isForwarding = (facts: SourceFacts) => {
  const { messages, aligned, authenticated, relayed, isList } = facts;
  if (relayed > 0 && relayed * 2 >= aligned) return true;
  if (messages > 0 && aligned / messages >= AUTHORIZED_SHARE) return false;
  return isRecognizedForwarding(facts) || (isList && authenticated > 0);
};

/** Names of hosts that only serve mailing lists. */
const LIST_HOST = /(?:^|\.)(?:lists?|listes|listen|listserv|mailman|majordomo|sympa|googlegroups)\./;

const factsOfSource = ({ identity, isSenderUnknown }: KeyedSource, members: readonly KeyedSource[]): SourceFacts => {
  const isVouched = members.some(({ trusted }) => trusted.messages > 0);
  const countsOf = (member: KeyedSource) => {
    const totals = isVouched ? member.trusted : member.totals;
    return member.isPlausible ? totals : { ...totals, aligned: 0 };
  };
  const sumOf = (some: readonly KeyedSource[]) => sumTotals(some.map(countsOf));
  const { messages, aligned, forwarded, authenticated } = sumOf(members);
  return {
    identity,
    isVouched,
    messages,
    aligned,
    forwarded,
    authenticated,
    relayed: sumOf(members.filter(({ isRelayed }) => isRelayed)).aligned,
    isList: members.some(({ evidence }) => evidence.envelope !== null && LIST_HOST.test(evidence.envelope)),
    isUnrelated: isSenderUnknown,
  };
};

/** The user's classifications by key, and what is known about addresses. */
interface UserClassificationContext {
  readonly userClassifications: ReadonlyMap<string, UserClassification>;
  readonly addresses: ReadonlyMap<string, SourceAddress>;
}

/**
 * The user's classification of a source: that of its key; else the one that all of its stored sources have under an earlier key:
 * from before sources were identified by service (`dkim:`, `spf:`, `ptr:`), or of their network before a name was known. It does
 * not extend to sources that appeared after it was made. Null for none.
 */
export const userClassificationOf = (
  key: string,
  members: readonly IdentifiedSource[],
  context: UserClassificationContext,
): Classification | null => {
  const { userClassifications } = context;
  const own = userClassifications.get(key);
  if (own !== undefined || userClassifications.size === 0) return own?.classification ?? null;
  const found = members.map((member) => earlierClassificationOf(member, context));
  const [first] = found;
  if (first === undefined || found.some((one) => one?.classification !== first.classification)) return null;
  const isOlder = members.some(({ firstSeenAtMs }, n) => firstSeenAtMs <= (found[n]?.atMs ?? 0));
  return isOlder ? first.classification : null;
};

/** The user's classification of a stored source under a key that it had earlier. */
export const earlierClassificationOf = (
  { key, evidence: { ip, signer, envelope }, firstSeenAtMs }: IdentifiedSource,
  { userClassifications, addresses }: UserClassificationContext,
): UserClassification | undefined => {
  if (signer !== null) return userClassifications.get(`dkim:${signer}`);
  if (envelope !== null) return userClassifications.get(`spf:${envelope}`);
  if (ip === null) return isLegacyKey(key) ? userClassifications.get(key) : undefined;
  const address = addresses.get(ip);
  const reverse = address?.isConfirmed === true && address.name !== null ? `ptr:${organisationOf(address.name)}` : "";
  const found = userClassifications.get(reverse) ?? userClassifications.get(`net:${ipNetworkOf(ip)}`);
  return found !== undefined && firstSeenAtMs <= found.atMs ? found : undefined;
};

/** The classification that the user's rules give to all stored sources that sent something; null where they differ. */
export const ruleClassificationOf = (members: readonly KeyedSource[]): Classification | null => {
  const active = members.filter(({ totals }) => totals.messages > 0);
  const [first = null, ...others] = new Set(active.map(({ rule }) => rule?.classification ?? null));
  return others.length === 0 ? first : null;
};

/** The owner of a selector sends at least this many times what a forwarder does. */
const OWNER_FACTOR = 5;
/** A sender that used a signature this much earlier than another one did not get it from that one, which may replay it. */
const EARLIER_DAYS = 7;

/** The mail of one sender with one signature. */
interface Signer {
  readonly key: string;
  messages: number;
  firstDay: number;
}

const signatureOf = ({ evidence: { signer, selector } }: IdentifiedSource) =>
  signer === null ? null : `${signer}/${selector ?? "-"}`;

/**
 * The numbers of the sources that relay mail which was signed elsewhere: it carries a signature that another sender uses for
 * much more mail, and does not pass SPF for the domain. Where trusted reports name a signature, only their counts say who sends how
 * much with it. Services that send for customers never relay.
 */
export const findRelayed = (
  sources: readonly IdentifiedSource[],
  identities: SourceIdentities,
): ReadonlySet<number> => {
  const trusted = new Set(sources.filter((source) => source.trusted.messages > 0).map(signatureOf));
  const bySignature = new Map<string, Map<string, Signer>>();
  for (const source of sources) {
    const signature = signatureOf(source);
    if (signature === null) continue;
    const { key } = source.identity;
    const signers = entryOf(bySignature, signature, () => new Map<string, Signer>());
    const signer = entryOf(signers, key, () => ({ key, messages: 0, firstDay: source.firstDay }));
    signer.messages += (trusted.has(signature) ? source.trusted : source.totals).messages;
    signer.firstDay = Math.min(signer.firstDay, source.firstDay);
  }
  const owners = new Map(
    [...bySignature].map(([signature, signers]) => [
      signature,
      [...signers.values()].reduce((a, b) => (b.messages > a.messages ? b : a)),
    ]),
  );
  const ownsSelector = new Set([...owners].flatMap(([signature, { key }]) => (signature.endsWith("/-") ? [] : key)));

  const isRelayed = (source: IdentifiedSource) => {
    const signature = signatureOf(source);
    const { identity, evidence } = source;
    if (signature === null || identities.isOwn(evidence.envelope) || !mayRelay(source)) return false;
    const owner = owners.get(signature);
    const signer = bySignature.get(signature)?.get(identity.key);
    if (owner === undefined || signer === undefined || owner === signer) return false;
    // Some reporters leave selectors out; then all signatures of the domain look alike.
    if (evidence.selector === null && ownsSelector.has(identity.key)) return false;
    if (signer.firstDay < owner.firstDay - EARLIER_DAYS) return false;
    return owner.messages > 0 && owner.messages >= OWNER_FACTOR * signer.messages;
  };
  return new Set(sources.filter(isRelayed).map(({ number }) => number));
};

const RELAYING_KINDS: ReadonlySet<ServiceKind> = new Set(["mailbox provider", "gateway", "hosting"]);

const mayRelay = ({ identity: { kind, service } }: IdentifiedSource) =>
  service === null ? kind !== "own" : RELAYING_KINDS.has(service.kind);
