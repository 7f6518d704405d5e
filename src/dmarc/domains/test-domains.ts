import { z } from "zod";
import fixture from "../../../fixtures/dmarc/test-domains.json" with { type: "json" };
import type { KeyMode } from "../../base/secrets.ts";
import { type DnsRecordData, type DnsResponse, type DnsResolver, type DnsType, emptyResponse } from "../../net/dns.ts";
import { authorisationName, serviceRecords } from "../record/authorisation.ts";
import { mergeRua } from "../record/merge.ts";
import { recordHost } from "../record/record-published.ts";

const table = z
  .strictObject({
    report_host: z.string(),
    published: z.record(z.string(), z.array(z.string())),
    never_set_up: z.array(z.string()),
  })
  .parse(fixture);

/** Where reports of a mode go to: the host that is set up, or for test keys, which nobody sends reports to, a made-up one. */
export const reportHostFor = (mode: KeyMode, reportHost: string | null): string | null =>
  mode === "test" ? (reportHost ?? table.report_host) : reportHost;

export interface TestDomain {
  readonly domain: string;
  /** Our reporting address. */
  readonly ours: string;
  readonly reportHost: string;
  /** Whether the owner has published what we asked for, as everybody does but for the names that never do. */
  readonly isSetUp: boolean;
}

const textsOf = ({ domain, ours, isSetUp }: TestDomain): readonly string[] => {
  const texts = table.published[domain] ?? [];
  if (!isSetUp || table.never_set_up.includes(domain)) return texts;
  const merged = mergeRua({ domain, published: { kind: "texts", texts }, ours, inherited: null });
  return merged.ok && merged.value.value !== null ? [merged.value.value] : texts;
};

/** A resolver that knows what test keys find at a domain (contract §3), the same at every question, without any network. */
export const createTestResolver = (wanted: TestDomain): DnsResolver => {
  const { domain, reportHost } = wanted;
  const authorisation = authorisationName(domain, reportHost);
  const zone = new Map<string, readonly string[]>([[recordHost(domain), textsOf(wanted)]]);
  if (authorisation.ok) {
    zone.set(
      authorisation.value,
      serviceRecords(reportHost, reportHost).flatMap(({ type, value }) => (type === "TXT" ? [value] : [])),
    );
  }
  return {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      const texts = type === "TXT" ? (zone.get(name) ?? []) : [];
      return {
        ...emptyResponse(name, type, texts.length > 0 ? "answer" : "nxdomain"),
        // Only questions about TXT have an answer, and their records are texts.
        records: texts as ReadonlyArray<DnsRecordData[T]>,
      };
    },
  };
};
