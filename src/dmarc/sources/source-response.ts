import { isoDay } from "../../base/days.ts";
import { ipNetworkOf } from "../addresses/ip-network.ts";
import { percentOf } from "./day-range.ts";
import { addTotals, type SourceAddress, type Classification, NO_TOTALS, type Totals } from "./rollup-store.ts";
import { type KeyedSource, shownIdentity } from "./source-keys.ts";
import { PENDING_KEY } from "./unauthenticated-mail.ts";
import type { Source } from "./source-schema.ts";

/** Stored sources that are shown as one; never without members. */
export interface SourceGroup {
  readonly key: string;
  readonly members: readonly KeyedSource[];
  readonly classification: Classification;
  readonly classifiedBy: Source["classified_by"];
}

/** Addresses shown of a source, and signatures and envelope domains. */
const ADDRESSES_MAX = 8;
const AUTHENTICATION_MAX = 10;

/** A source as the interface answers it; an empty list for a group without members. */
export const showSource = (
  { key, members, classification, classifiedBy }: SourceGroup,
  facts: ReadonlyMap<string, SourceAddress>,
): Source[] => {
  const [first] = members;
  if (first === undefined) return [];
  const { kind, name, service } = shownIdentity(key, first);
  const totals = members.reduce<Totals>((sum, member) => addTotals(sum, member.totals), NO_TOTALS);
  const addresses = addressesOf(members);
  const networks = new Set([...addresses.keys()].map(ipNetworkOf));
  const shown: Source = {
    key,
    kind,
    name: key === "unauthenticated" ? `${name} from ${plural(networks.size, "network")}` : name,
    service: service?.name ?? null,
    service_id: service?.id ?? null,
    classification,
    classified_by: classifiedBy,
    ...countsOf(totals),
    first_day: isoDay(Math.min(...members.map(({ firstDay }) => firstDay))),
    last_day: isoDay(Math.max(...members.map(({ lastDay }) => lastDay))),
    dkim: signaturesOf(members),
    spf: envelopesOf(members),
    network_count: networks.size,
    address_count: addresses.size,
    lookups_pending: key === PENDING_KEY || [...addresses.keys()].some((ip) => facts.get(ip)?.isAsked !== true),
    addresses: [...addresses]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, ADDRESSES_MAX)
      .map(([ip]) => showAddress(ip, facts.get(ip))),
  };
  return [shown];
};

/** The addresses of some sources with the last day of each; in the order in which they were first seen. */
const addressesOf = (members: readonly KeyedSource[]): ReadonlyMap<string, number> => {
  const addresses = new Map<string, number>();
  for (const { evidence, lastDay } of members) {
    if (evidence.ip === null) continue;
    addresses.set(evidence.ip, Math.max(addresses.get(evidence.ip) ?? 0, lastDay));
  }
  return addresses;
};

const showAddress = (ip: string, facts: SourceAddress | undefined): Source["addresses"][number] => ({
  ip,
  reverse_name: facts?.name ?? null,
  confirmed: facts?.isConfirmed ?? false,
  asn: facts?.asn ?? null,
  as_name: facts?.asName ?? null,
  country: facts?.country ?? null,
});

/** The signatures that passed, those of the most messages first. */
const signaturesOf = (members: readonly KeyedSource[]): Source["dkim"] => {
  const found = new Map<string, Source["dkim"][number]>();
  for (const { evidence, totals } of members) {
    const { signer, selector, foreign } = evidence;
    if (signer !== null) count(found, { domain: signer, selector, aligned: true }, totals);
    if (foreign !== null) count(found, { domain: foreign, selector: null, aligned: false }, totals);
  }
  return most(found);
};

/** The envelope domains that passed SPF, those of the most messages first. */
const envelopesOf = (members: readonly KeyedSource[]): Source["spf"] => {
  const found = new Map<string, Source["spf"][number]>();
  for (const { evidence, totals } of members) {
    if (evidence.envelope !== null) count(found, { domain: evidence.envelope }, totals);
  }
  return most(found);
};

const count = <T extends { readonly domain: string; readonly messages: number }>(
  found: Map<string, T>,
  what: Omit<T, "messages">,
  totals: Totals,
): void => {
  if (totals.messages === 0) return;
  const name = JSON.stringify(what);
  const messages = (found.get(name)?.messages ?? 0) + totals.messages;
  found.set(name, { ...what, messages } as T);
};

const most = <T extends { readonly domain: string; readonly messages: number }>(found: ReadonlyMap<string, T>): T[] =>
  [...found.values()]
    .toSorted((a, b) => b.messages - a.messages || (a.domain < b.domain ? -1 : 1))
    .slice(0, AUTHENTICATION_MAX);

const countsOf = (totals: Totals) => {
  const { messages, aligned } = totals;
  return {
    messages,
    aligned,
    failing: messages - aligned,
    aligned_percent: percentOf(aligned, messages),
    dkim_aligned: totals.alignedDkim,
    spf_aligned: totals.alignedSpf,
    forwarded: totals.forwarded,
    authenticated_unaligned: totals.authenticated,
    quarantined: totals.quarantined,
    rejected: totals.rejected,
  };
};

const plural = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
