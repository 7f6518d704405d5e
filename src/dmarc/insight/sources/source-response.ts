import { z } from "zod";
import { countField, dayField, flagField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { isoDay } from "../../../foundation/base/days.ts";
import { mapInSteps, type Steps } from "../../../foundation/base/in-steps.ts";
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

/** A source as the API returns it, in steps; an empty list for a group without members. */
export function* sourceResponse(
  { key, members, classification, classifiedBy }: SourceGroup,
  known: ReadonlyMap<string, SourceAddress>,
): Steps<Source[]> {
  const [first] = members;
  if (first === undefined) return [];
  const { kind, name, service } = shownIdentity(key, first);
  const { totals, dkim, spf, lastDays, ...sums } = yield* sumMembers(members);
  const { messages, aligned } = totals;
  const networks = sums.networks.size;
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
    first_day: isoDay(sums.firstDay),
    last_day: isoDay(sums.lastDay),
    dkim: dkim.most(),
    spf: spf.most(),
    network_count: networks,
    address_count: lastDays.size,
    lookups_pending: key === PENDING_KEY || lastDays.keys().some((ip) => known.get(ip)?.isAsked !== true),
    addresses: [...lastDays]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, ADDRESSES_MAX)
      .map(([ip]) => addressResponse(ip, known.get(ip))),
  };
  return [source];
}

/** What members add up to. */
function* sumMembers(members: readonly KeyedSource[]) {
  const [dkim, spf] = [new Tally<Source["dkim"][number]>(), new Tally<Source["spf"][number]>()];
  /** By address, in the order in which they were first seen. */
  const lastDays = new Map<string, number>();
  const networks = new Set<string>();
  let [firstDay, lastDay] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  yield* mapInSteps(
    members,
    ({ evidence: { ip, signer, selector, foreign, envelope }, totals: { messages }, ...days }) => {
      firstDay = Math.min(firstDay, days.firstDay);
      lastDay = Math.max(lastDay, days.lastDay);
      if (ip !== null) {
        const before = lastDays.get(ip);
        if (before === undefined) networks.add(ipNetworkOf(ip));
        lastDays.set(ip, Math.max(before ?? 0, days.lastDay));
      }
      if (signer !== null)
        dkim.add(JSON.stringify([signer, selector]), { domain: signer, selector, aligned: true, messages });
      if (foreign !== null) dkim.add(foreign, { domain: foreign, selector: null, aligned: false, messages });
      if (envelope !== null) spf.add(envelope, { domain: envelope, messages });
    },
  );
  return { totals: sumTotals(members.map(({ totals }) => totals)), dkim, spf, lastDays, networks, firstDay, lastDay };
}

const addressResponse = (ip: string, address: SourceAddress | undefined) => ({
  ip,
  reverse_name: address?.name ?? null,
  confirmed: address?.isConfirmed ?? false,
  asn: address?.asn ?? null,
  as_name: address?.asName ?? null,
  country: address?.country ?? null,
});

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
