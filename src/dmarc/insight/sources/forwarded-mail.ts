import { hostsWebsites } from "../../records/services/services.ts";
import { isRecognizedForwarding } from "./rollup-rows.ts";
import type { IdentifiedSource } from "./source-identity.ts";

/** Whether mail was signed elsewhere, or receivers recognize it as forwarded; `relayed`: see `findRelayed`. */
export const isForwardedSource = ({ number, totals }: IdentifiedSource, relayed: ReadonlySet<number>): boolean =>
  relayed.has(number) || isRecognizedForwarding(totals);

/** The forwarded messages by address. */
export const forwardedByAddress = (
  sources: readonly IdentifiedSource[],
  relayed: ReadonlySet<number>,
): ReadonlyMap<string, number> => {
  const messages = new Map<string, number>();
  for (const source of sources) {
    const { ip } = source.evidence;
    if (ip !== null && isForwardedSource(source, relayed)) {
      messages.set(ip, (messages.get(ip) ?? 0) + source.totals.messages);
    }
  }
  return messages;
};

/** More mail that passes nothing would be that of a form on the same host. */
const UNCHECKED_MESSAGES_MAX = 10;
const UNCHECKED_SHARE_MAX = 0.05;

/**
 * Whether a little mail of an address passes nothing, and a service that hosts websites forwards other mail from there: a receiver
 * could not look up the key, or the mail was changed.
 */
export const isUncheckedForwarding = (
  { identity: { service }, evidence: { ip, signer, envelope, foreign }, totals }: IdentifiedSource,
  forwarded: ReadonlyMap<string, number>,
): boolean => {
  if (service === null || !hostsWebsites(service)) return false;
  if (ip === null || signer !== null || envelope !== null || foreign !== null) return false;
  const messages = forwarded.get(ip);
  if (messages === undefined) return false;
  return totals.messages < Math.max(UNCHECKED_MESSAGES_MAX, messages * UNCHECKED_SHARE_MAX);
};
