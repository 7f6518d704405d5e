import type { IngestionFinding } from "./ingestion-finding.ts";

/** Days for which the bytes are kept of what no domain has a say in. */
export const RAW_DAYS = 90;

/** Days for which domains that are there want bytes kept. */
export interface RawWishes {
  readonly byNumber: ReadonlyMap<number, number>;
  readonly byId: ReadonlyMap<string, number>;
}

/**
 * Days for which the bytes of something are kept: as long as the most patient of the domains wants that it is about. What
 * was found in it about no domain at all is for the domain to say whose address it came to, if any.
 */
export const rawDaysOf = (
  { domain, findings }: { readonly domain: number | null; readonly findings: readonly IngestionFinding[] },
  { byNumber, byId }: RawWishes,
): number => {
  const own = (domain === null ? undefined : byNumber.get(domain)) ?? RAW_DAYS;
  const days = findings.flatMap(({ domain_id }) => (domain_id === null ? own : (byId.get(domain_id) ?? [])));
  return days.length === 0 ? own : Math.max(...days);
};
