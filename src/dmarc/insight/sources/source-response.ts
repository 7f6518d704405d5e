import { z } from "zod";
import { countField, dayField, flagField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { isoDay } from "../../../foundation/base/days.ts";
import { percentOf, sumTotals, type SourceAddress } from "./rollup-rows.ts";
import { CLASSIFICATIONS, type Classification } from "./rollup-store.ts";
import { SOURCE_KINDS } from "./source-identity.ts";
import { shownIdentity, type KeyedSource, PENDING_KEY, UNAUTHENTICATED_KEY } from "./source-keys.ts";
import { ipNetworkOf } from "../addresses/address-store.ts";

/** A source exactly as the API returns it. Counts are those of the requested range. */
export const sourceSchema = z
  .object({
    key: textField(
      "`own`: the domain's own servers; where some of them fail and others pass in the range, those that pass. `own/failing`: those that fail then: less than 90 % of their mail is aligned. `service:<id>`: a known service; with `/others` at the end, mail from that service that cannot be attributed to the domain's own account, such as forwarded mail. Of services that host websites, forms of your own website have the key of the service. `org:<domain>`: another organization. `net:<network>`: a network without a name; with `/unauthenticated` at the end, its unauthenticated mail where other mail comes from the network, too. `unauthenticated`: unauthenticated mail from addresses without a proper reverse name, taken together. `pending`: the same while reverse names are being looked up. `other`: addresses beyond the most that are kept apart for a domain.",
    ),
    kind: z.enum(SOURCE_KINDS).describe("The kind of sender that the key stands for; `network` also for `other`."),
    name: textField("Display name."),
    service: nullableText("The known sending service; null for other senders."),
    service_id: nullableText("The identifier of that service."),
    classification: z
      .enum(CLASSIFICATIONS)
      .describe("Your classification, else the automatic one by the rules in the list of sources."),
    classified_by: z
      .enum(["user", "service"])
      .describe("`user`: you classified it, directly or by a rule, which overrides the automatic classification."),
    messages: countField("Messages in reports."),
    aligned: countField("Messages that passed DMARC, by aligned DKIM or aligned SPF."),
    failing: countField("Messages that failed DMARC."),
    aligned_percent: z
      .number()
      .nullable()
      .describe("Share of aligned messages in percent, with one decimal; null when there are no messages."),
    dkim_aligned: countField("Messages with an aligned DKIM signature that passed."),
    spf_aligned: countField("Messages that passed SPF for an aligned envelope domain."),
    forwarded: countField("Failing messages that the receiver recognized as forwarded."),
    authenticated_unaligned: countField("Failing messages for which DKIM or SPF passed for another domain."),
    quarantined: countField("Messages that receivers quarantined."),
    rejected: countField("Messages that receivers rejected."),
    first_day: dayField("The first day in any report, whatever the range."),
    last_day: dayField("The last day in any report, whatever the range."),
    dkim: z
      .array(
        z.object({
          domain: textField("The signing domain (`d=`)."),
          selector: nullableText("The selector (`s=`); null when unaligned or not reported."),
          aligned: flagField("Whether the signing domain is aligned with header_from."),
          messages: countField("Messages with this signature."),
        }),
      )
      .describe("DKIM signatures that passed, at most ten, those with the most messages first."),
    spf: z
      .array(
        z.object({
          domain: textField("The envelope domain."),
          messages: countField("Messages with this envelope domain."),
        }),
      )
      .describe("Envelope domains that passed SPF, at most ten, those with the most messages first."),
    network_count: countField("Number of networks of its addresses: /24 for IPv4, /48 for IPv6."),
    address_count: countField("Number of its addresses."),
    lookups_pending: flagField("Whether reverse names of its addresses are being looked up."),
    addresses: z
      .array(
        z.object({
          ip: textField("The IP address."),
          reverse_name: nullableText("Its reverse DNS name; null when it has none or it is not known yet."),
          confirmed: flagField("Whether the reverse name resolves to the address."),
          asn: z.int().nullable().describe("The AS that announces the address; null when unknown."),
          as_name: nullableText("The name of that AS; null when unknown."),
          country: nullableText("Country of the network, ISO 3166-1 alpha-2; null when unknown."),
        }),
      )
      .describe("Its most recent addresses, at most eight."),
  })
  .meta({ title: "DmarcSource" });

export type Source = Readonly<z.infer<typeof sourceSchema>>;

/** Stored sources that are shown as one. */
interface SourceGroup {
  readonly key: string;
  readonly members: readonly KeyedSource[];
  readonly classification: Classification;
  readonly classifiedBy: Source["classified_by"];
}

const ADDRESSES_MAX = 8;
const AUTHENTICATION_MAX = 10;

/** A source as the API returns it; an empty list for a group without members. */
export const sourceResponse = (
  { key, members, classification, classifiedBy }: SourceGroup,
  known: ReadonlyMap<string, SourceAddress>,
): Source[] => {
  const [first] = members;
  if (first === undefined) return [];
  const { kind, name, service } = shownIdentity(key, first);
  const totals = sumTotals(members.map((member) => member.totals));
  const { messages, aligned } = totals;
  const lastDays = lastDayByAddress(members);
  const ips = [...lastDays.keys()];
  const networks = new Set(ips.map(ipNetworkOf)).size;
  const source: Source = {
    key,
    kind,
    name: key === UNAUTHENTICATED_KEY ? `${name} from ${networks} network${networks === 1 ? "" : "s"}` : name,
    service: service?.name ?? null,
    service_id: service?.id ?? null,
    classification,
    classified_by: classifiedBy,
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
    first_day: isoDay(members.reduce((day, { firstDay }) => Math.min(day, firstDay), first.firstDay)),
    last_day: isoDay(members.reduce((day, { lastDay }) => Math.max(day, lastDay), first.lastDay)),
    dkim: signaturesOf(members),
    spf: envelopesOf(members),
    network_count: networks,
    address_count: ips.length,
    lookups_pending: key === PENDING_KEY || ips.some((ip) => known.get(ip)?.isAsked !== true),
    addresses: [...lastDays]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, ADDRESSES_MAX)
      .map(([ip]) => addressResponse(ip, known.get(ip))),
  };
  return [source];
};

/** The addresses in the order in which they were first seen. */
const lastDayByAddress = (members: readonly KeyedSource[]) => {
  const lastDays = new Map<string, number>();
  for (const { evidence, lastDay } of members) {
    if (evidence.ip !== null) lastDays.set(evidence.ip, Math.max(lastDays.get(evidence.ip) ?? 0, lastDay));
  }
  return lastDays;
};

const addressResponse = (ip: string, address: SourceAddress | undefined) => ({
  ip,
  reverse_name: address?.name ?? null,
  confirmed: address?.isConfirmed ?? false,
  asn: address?.asn ?? null,
  as_name: address?.asName ?? null,
  country: address?.country ?? null,
});

const signaturesOf = (members: readonly KeyedSource[]) => {
  const tally = new Tally<Source["dkim"][number]>();
  for (const { evidence, totals } of members) {
    const { signer, selector, foreign } = evidence;
    const { messages } = totals;
    if (signer !== null)
      tally.add(JSON.stringify([signer, selector]), { domain: signer, selector, aligned: true, messages });
    if (foreign !== null) tally.add(foreign, { domain: foreign, selector: null, aligned: false, messages });
  }
  return tally.most();
};

const envelopesOf = (members: readonly KeyedSource[]) => {
  const tally = new Tally<Source["spf"][number]>();
  for (const { evidence, totals } of members)
    if (evidence.envelope !== null)
      tally.add(evidence.envelope, { domain: evidence.envelope, messages: totals.messages });
  return tally.most();
};

/** Adds up the messages of equal entries. */
class Tally<T extends { readonly domain: string; readonly messages: number }> {
  readonly #entries = new Map<string, T>();

  /** `id` is the same for equal entries. */
  add(id: string, entry: T): void {
    if (entry.messages === 0) return;
    const before = this.#entries.get(id)?.messages ?? 0;
    this.#entries.set(id, before === 0 ? entry : { ...entry, messages: before + entry.messages });
  }

  /** The entries with the most messages first. */
  most(): T[] {
    return [...this.#entries.values()]
      .toSorted((a, b) => b.messages - a.messages || (a.domain < b.domain ? -1 : 1))
      .slice(0, AUTHENTICATION_MAX);
  }
}
