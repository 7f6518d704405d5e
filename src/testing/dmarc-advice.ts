import {
  type AdvisedSource,
  type AdviceFacts,
  failingMessages,
  weighMail,
} from "../dmarc/insight/advice/advice-facts.ts";
import type { FailureDetail, FailureHistory } from "../dmarc/insight/advice/failure-history.ts";
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
  ...{ forwarded: 0, authenticated_unaligned: 0, dkim: [], isAwaited: false, history: null },
  ...{ first_day: "2026-01-01", last_day: "2026-01-30" },
  ...more,
});

/** Failures of a source that goes on failing. */
export const historyOf = (more: Partial<FailureHistory> = {}): FailureHistory => ({
  ...{
    sinceDay: TODAY - 5,
    lastDay: TODAY - 1,
    hasPassedBefore: false,
    hasRecovered: false,
    messages: 500,
    failing: 500,
  },
  ...more,
});

/** What records show of a source whose results are not known. */
export const detailOf = (more: Partial<FailureDetail> = {}): FailureDetail => ({
  ...{ causes: [], results: null, selectors: new Set(), usesSpf: false, addresses: [] },
  ...more,
});

/** An unknown sender whose mail is authenticated for another domain. */
export const stranger = (messages: number, more: Partial<AdvisedSource> = {}): AdvisedSource =>
  source({
    ...{ key: "org:example.net", kind: "organization", name: "example.net", classification: "unknown" },
    ...{ messages, aligned: 0, authenticated_unaligned: messages },
    ...more,
  });

/** 2026-01-31. */
export const TODAY = 20_484;

/** What domains with fewer than 100 messages have. */
const littleOf = (sources: readonly AdvisedSource[]): AdviceFacts["little"] => {
  const { messages, failing } = weighMail(sources);
  return messages >= 100
    ? null
    : { messages, failing: failing.reduce((sum, one) => sum + failingMessages(one), 0), reporters: 2 };
};

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
  ...{ policyDays: 14, policyAgeDays: 14, reporters: 2 },
  sources: [source()],
  recentSources: more.sources ?? [source()],
  recentUnchecked: () => 0,
  little: littleOf(more.sources ?? [source()]),
  ...{ detailOf: () => null, ownDays: [], today: TODAY, silentDays: null, declaredSilent: null, openAlerts: [] },
  reportedLately: more.reportedDays ?? 14,
  ...{ unauthenticated: 0, unauthenticatedNames: [] },
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
