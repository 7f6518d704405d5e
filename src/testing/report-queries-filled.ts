import { type SampleRow, SAMPLE_DAY_S } from "./dmarc-reports.ts";
import type { createReportQueries } from "./report-queries.ts";

type ReportQueries = ReturnType<ReturnType<typeof createReportQueries>>;
const DAY_S = 86_400;

/** Mail of the domain's own, aligned. */
export const OWN: SampleRow = { ip: "8.8.8.8", count: 90 };
/** Mail by a service that proves its own name only. */
export const SERVICE: SampleRow = {
  ...{ ip: "9.9.9.9", count: 6, disposition: "quarantine", dkim: "fail", spf: "fail" },
  dkimResults: ["sendgrid.net pass s1"],
  spfResults: ["em.sendgrid.net pass"],
};
/** Unauthenticated mail. */
export const STRANGER: SampleRow = {
  ...{ ip: "5.5.5.5", count: 3, disposition: "reject", dkim: "fail", spf: "fail" },
  dkimResults: [],
  spfResults: ["example.com fail"],
};
/** Mail that a mailing list forwarded. */
export const FORWARDED: SampleRow = {
  ...STRANGER,
  ip: "6.6.6.6",
  count: 1,
  disposition: "none",
  reasons: ["mailing_list"],
};

/** A domain with two reports: all four kinds of mail on one day, good mail on the day before. */
export const fillReportQueries = async (harness: ReportQueries) => {
  const domain = harness.enrol();
  await harness.give({ rows: [OWN, SERVICE, STRANGER, FORWARDED] });
  await harness.give({ org: "Other Receiver", begin: SAMPLE_DAY_S - DAY_S, rows: [{ ...OWN, count: 10 }] });
  const get = (path: string, options: Parameters<typeof harness.request>[2] = {}) =>
    harness.request("GET", `${domain.id}/${path}`, options);
  return { ...harness, domain, get };
};
