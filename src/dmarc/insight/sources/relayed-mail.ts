import { entryOf } from "../../reports/ingest/rollup.ts";
import type { IdentifiedSource, SourceIdentities } from "./source-identity.ts";

/** The owner of a selector sends at least this many times what a forwarder does. */
const OWNER_FACTOR = 5;
/** Whoever used a signature this much earlier than another sender did not get it from that one, who may replay it. */
const EARLIER_DAYS = 7;

/** The mail of one sender with one signature. */
interface Signer {
  readonly key: string;
  messages: number;
  firstDay: number;
}

const signatureOf = ({ evidence: { signer, selector } }: IdentifiedSource): string | null =>
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

  const isRelayed = (source: IdentifiedSource): boolean => {
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

const mayRelay = ({ identity: { kind, service } }: IdentifiedSource): boolean =>
  service === null ? kind !== "own" : service.kind === "mailbox provider" || service.kind === "gateway";
