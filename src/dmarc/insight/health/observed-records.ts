import { type DnsResponse, isDefinite } from "../../../foundation/net/dns.ts";
import { dmarcRecordsIn, recordHost } from "../../records/record/record.ts";
import { policyRecordsIn } from "../../records/sts/policy-text.ts";
import type { HealthDns } from "./section-report.ts";

/** Records whose changes are kept. */
export const RECORD_KINDS = ["dmarc", "spf", "dkim", "mx", "mta_sts"] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];

/** The records of a kind at a name, as the DNS certainly has them. */
export interface ObservedRecord {
  readonly kind: RecordKind;
  readonly host: string;
  /** The texts of the records, in order; empty where there is no such record. */
  readonly values: readonly string[];
}

/** Of records at a name, and characters of each, that are kept. */
const VALUES_MAX = 20;
const VALUE_CHARACTERS_MAX = 2_000;

/**
 * The records of a domain and of its DKIM keys (`keys`: names of the keys). Names that the DNS did not respond about are missing.
 * Sends no query that the checks of the same run sent.
 */
export const observeRecords = async (
  dns: HealthDns,
  domain: string,
  keys: readonly string[],
): Promise<readonly ObservedRecord[]> => {
  const observe = async (kind: RecordKind, host: string, wanted: (text: string) => boolean) => {
    const response = await dns.resolve(host, "TXT");
    return recordOf(kind, host, response, response.records.filter(wanted));
  };
  const mx = await dns.resolve(domain, "MX");
  const exchanges = mx.records.map(({ preference, exchange }) => `${preference} ${exchange}`);
  const found = await Promise.all([
    observe("dmarc", recordHost(domain), (text) => dmarcRecordsIn([text]).length > 0),
    observe("spf", domain, (text) => /^v=spf1(?: |$)/i.test(text)),
    recordOf("mx", domain, mx, exchanges),
    observe("mta_sts", `_mta-sts.${domain}`, (text) => policyRecordsIn([text]).length > 0),
    ...keys.map((name) => observe("dkim", name, () => true)),
  ]);
  return found.flat();
};

const recordOf = (
  kind: RecordKind,
  host: string,
  { outcome }: Pick<DnsResponse, "outcome">,
  texts: readonly string[],
): readonly ObservedRecord[] => {
  if (!isDefinite(outcome)) return [];
  const values = texts.map((text) => text.slice(0, VALUE_CHARACTERS_MAX).toWellFormed());
  return [{ kind, host, values: values.toSorted().slice(0, VALUES_MAX) }];
};
