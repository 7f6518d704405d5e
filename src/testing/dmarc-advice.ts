import type { AdvisedSource, AdviceFacts } from "../dmarc/insight/advice/advice-model.ts";
import type { StatePolicy } from "../dmarc/records/domains/domain-state.ts";
import { parseRecord } from "../dmarc/records/record/record.ts";

/** The destination of reports in made records. */
export const RUA = "rua=mailto:k@r.example";

/** What receivers apply by a record of the domain's own. */
export const policyOf = (record: string): StatePolicy | null => {
  const { values } = parseRecord(record);
  if (values === null) return null;
  const { p, sp, np, adkim, aspf, t, pct } = values;
  return { p, sp, np, adkim, aspf, t, pct, own: true, inherited_from: null };
};

/** A sender whose mail passes. */
export const source = (more: Partial<AdvisedSource> = {}): AdvisedSource => ({
  ...{ key: "own", kind: "own", name: "example.com (own servers)", service_id: null },
  classification: "authorized",
  messages: 1000,
  aligned: 1000,
  ...{ forwarded: 0, authenticated_unaligned: 0, dkim: [], addresses: [] },
  ...{ first_day: "2026-01-01", last_day: "2026-01-30" },
  ...more,
});

/** An unknown sender whose mail is authenticated for another domain. */
export const stranger = (messages: number, more: Partial<AdvisedSource> = {}): AdvisedSource =>
  source({
    ...{ key: "org:example.net", kind: "organization", name: "example.net", classification: "unknown" },
    ...{ messages, aligned: 0, authenticated_unaligned: messages },
    ...more,
  });

/** A domain that has everything; unless it is said otherwise, its last days were as all of them. */
export const facts = (record: string | null, more: Partial<AdviceFacts> = {}): AdviceFacts => ({
  domain: "example.com",
  isOrganisational: true,
  sendsMail: true,
  status: "active",
  failing: [],
  record,
  policy: record === null ? null : policyOf(record),
  reportedDays: 14,
  policyDays: 14,
  reporters: 2,
  sources: [source()],
  recentSources: more.sources ?? [source()],
  reportedLately: more.reportedDays ?? 14,
  unauthenticated: 0,
  unknownReporters: {
    names: [],
    messages: 0,
    isCovered: false,
    unvouchedWords: "is not authenticated as the reporter's",
  },
  passedLately: (more.sources ?? [source()]).reduce((sum, { aligned }) => sum + aligned, 0),
  names: [],
  health: [],
  ...more,
});

/** Records at the beginning of the way, and with nothing but `p` to raise. */
export const MONITORING = `v=DMARC1; p=none; ${RUA}`;
export const ALL_SET = `v=DMARC1; p=quarantine; np=reject; ${RUA}`;
