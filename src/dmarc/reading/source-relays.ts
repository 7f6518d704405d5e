import type { Identities } from "./source-identity.ts";
import type { MeasuredSource } from "./source-pool.ts";

/** Whoever first signed with a selector sent so many times what a forwarder passes on. */
const OWNER_FACTOR = 5;

const signatureOf = ({ evidence: { signer, selector } }: MeasuredSource): string | null =>
  signer === null ? null : `${signer}/${selector ?? "-"}`;

/**
 * The sources whose mail was signed elsewhere and survived being forwarded: it carries a signature that another sender uses for
 * much more mail, and does not pass SPF for the domain. Services that send for customers never forward.
 */
export const findRelayed = (sources: readonly MeasuredSource[], { isOwn }: Identities): ReadonlySet<number> => {
  const bySignature = new Map<string, Map<string, number>>();
  for (const source of sources) {
    const signature = signatureOf(source);
    if (signature === null) continue;
    const senders = bySignature.get(signature) ?? new Map<string, number>();
    bySignature.set(signature, senders);
    const { key } = source.identity;
    senders.set(key, (senders.get(key) ?? 0) + source.totals.messages);
  }
  const ownerOf = (signature: string): readonly [key: string, messages: number] | undefined =>
    [...(bySignature.get(signature) ?? [])].reduce((a, b) => (b[1] > a[1] ? b : a), ["", -1] as const);
  const owning = new Set<string>();
  for (const signature of bySignature.keys()) {
    const owner = signature.endsWith("/-") ? undefined : ownerOf(signature);
    if (owner !== undefined) owning.add(owner[0]);
  }

  const isRelayed = (source: MeasuredSource): boolean => {
    const signature = signatureOf(source);
    const { identity, evidence } = source;
    if (signature === null || isOwn(evidence.envelope) || !mayForward(source)) return false;
    const owner = ownerOf(signature);
    // Some reporters leave selectors out: then all signatures of the domain look alike.
    if (owner === undefined || owner[0] === identity.key || (evidence.selector === null && owning.has(identity.key)))
      return false;
    return owner[1] >= OWNER_FACTOR * (bySignature.get(signature)?.get(identity.key) ?? 0);
  };
  return new Set(sources.flatMap((source) => (isRelayed(source) ? [source.number] : [])));
};

const mayForward = ({ identity: { kind, service } }: MeasuredSource): boolean =>
  service === null ? kind !== "own" : service.kind === "mailbox provider" || service.kind === "gateway";
