import type { AttentionItem } from "../../../foundation/base/attention.ts";
import type { DnsCheck } from "../../records/domains/domain-state.ts";
import { readLastCheck } from "../../records/domains/domain-state.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";

/** What a failed check of the DNS means, in the words of the dashboard. */
const CHECK_TITLES: Readonly<Record<DnsCheck["code"], (domain: string) => string>> = {
  record: (domain) => `${domain} has no valid DMARC record`,
  reporting_address: (domain) => `${domain} no longer sends its reports here`,
  authorisation: (domain) => `Receivers may not send reports about ${domain} here`,
};

/** A domain whose status is `action_required`. `sinceMs` is null when unknown. */
export const statusAttention = (row: DomainRow, sinceMs: number | null): AttentionItem => {
  const failed = readLastCheck(row.lastCheck)?.checks.find(({ ok }) => ok === false);
  return {
    // Without a record anybody can forge the domain; without reports that only stays unseen.
    severity: failed?.code === "record" ? "bad" : "warn",
    label: "Record",
    title: failed === undefined ? `No reports about ${row.domain} can arrive` : CHECK_TITLES[failed.code](row.domain),
    detail: failed?.message ?? "The last check of its DNS got no response. The check before it failed.",
    action: { text: "Show the record", path: `/dmarc/${row.id}/record` },
    sinceMs,
  };
};
