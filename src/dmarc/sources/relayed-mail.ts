import { entryOf } from "../ingest/rollup.ts";
import type { Identities } from "./source-identity.ts";
import type { MeasuredSource } from "./unauthenticated-mail.ts";

/** Whoever signs with a selector sends so many times what a forwarder does. */
const OWNER_FACTOR = 5;
/** Whoever used a signature so long before another did not get it from that one, who may replay what was signed. */
const EARLIER_DAYS = 7;

/** The mail of a sender with one signature. */
interface Sender {
  messages: number;
  firstDay: number;
}

const signatureOf = ({ evidence: { signer, selector } }: Pick<MeasuredSource, "evidence">): string | null =>
  signer === null ? null : `${signer}/${selector ?? "-"}`;

/**
 * The sources whose mail was signed elsewhere and forwarded: it carries a signature that another sender uses for much more mail, and
 * does not pass SPF for the domain. Where trusted reports come, their counts alone say who sends how much. Services that send for
 * customers never forward.
 */
export const findRelayed = (sources: readonly MeasuredSource[], { isOwn }: Identities): ReadonlySet<number> => {
  const isVouched = sources.some(({ trusted }) => trusted.messages > 0);
  const bySignature = new Map<string, Map<string, Sender>>();
  for (const { identity, ...source } of sources) {
    const signature = signatureOf(source);
    if (signature === null) continue;
    const senders = entryOf(bySignature, signature, () => new Map<string, Sender>());
    const sender = entryOf(senders, identity.key, () => ({ messages: 0, firstDay: source.firstDay }));
    sender.messages += (isVouched ? source.trusted : source.totals).messages;
    sender.firstDay = Math.min(sender.firstDay, source.firstDay);
  }
  const owners = new Map<string, readonly [key: string, sender: Sender]>();
  const owning = new Set<string>();
  for (const [signature, senders] of bySignature) {
    const owner = [...senders].reduce((a, b) => (b[1].messages > a[1].messages ? b : a));
    owners.set(signature, owner);
    if (!signature.endsWith("/-")) owning.add(owner[0]);
  }

  const isRelayed = (source: MeasuredSource): boolean => {
    const signature = signatureOf(source);
    const { identity, evidence } = source;
    if (signature === null || isOwn(evidence.envelope) || !mayForward(source)) return false;
    const owner = owners.get(signature);
    // Some reporters leave selectors out: then all signatures of the domain look alike.
    if (owner === undefined || owner[0] === identity.key || (evidence.selector === null && owning.has(identity.key)))
      return false;
    const sender = bySignature.get(signature)?.get(identity.key);
    if (sender === undefined || sender.firstDay < owner[1].firstDay - EARLIER_DAYS) return false;
    return owner[1].messages > 0 && owner[1].messages >= OWNER_FACTOR * sender.messages;
  };
  return new Set(sources.flatMap((source) => (isRelayed(source) ? [source.number] : [])));
};

const mayForward = ({ identity: { kind, service } }: MeasuredSource): boolean =>
  service === null ? kind !== "own" : service.kind === "mailbox provider" || service.kind === "gateway";
