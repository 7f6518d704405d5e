import { sampleReportMail, type SampleRow } from "../../src/testing/dmarc-reports.ts";

/** The domain that all these reports are about. */
export const DOMAIN = "bench-lab.com";
export const ROWS = 10;
const REPORTERS = 12;
const DAY_S = 86_400;
const DAYS = 30;

export const orgOf = (n: number): string => `reporter${n % REPORTERS}.example`;

/** Reports after which addresses, days and reporters repeat. The counts then differ: otherwise it would be the same report, sent twice. */
const REPEATED_AFTER = 9_000;

/** Ten rows: aligned ones, one passed on, and failing ones from changing addresses. */
const rowsOf = (n: number): readonly SampleRow[] =>
  Array.from({ length: ROWS }, (_, row): SampleRow => {
    const count = 1 + ((n + Math.floor(n / REPEATED_AFTER) + row) % 9);
    if (row < 6) return { ip: `192.0.2.${row + 1}`, count };
    if (row === 6)
      return {
        ip: "198.51.100.7",
        count,
        dkim: "fail",
        spf: "fail",
        spfResults: ["list.example pass"],
        reasons: ["mailing_list a list"],
      };
    if (row === 7) return { ip: `198.51.100.${n % 200}`, count, spf: "fail", spfResults: ["esp.example pass"] };
    return {
      ip: `203.0.113.${(n * 7 + row) % 250}`,
      count,
      dkim: "fail",
      spf: "fail",
      disposition: "reject",
      headerFrom: `www.${DOMAIN}`,
    };
  });

/** The messages that report number `n` counts. */
export const messagesOf = (n: number): number => rowsOf(n).reduce((sum, { count = 1 }) => sum + count, 0);

/** Report number `n` of a stream of them, as the mail of a reporter; `todayS` is the midnight after the last day told of. */
export const mailOf = (n: number, to: string, todayS: number): Buffer => {
  const org = orgOf(n);
  const begin = todayS - (1 + (n % DAYS)) * DAY_S;
  return sampleReportMail(
    { domain: DOMAIN, org, email: `dmarc@${org}`, reportId: `r${n}`, begin, rows: rowsOf(n) },
    to,
  );
};

/** A report with `rows` rows, each of another address. */
export const largeMailOf = (to: string, todayS: number, rows: number): Buffer =>
  sampleReportMail(
    {
      ...{
        domain: DOMAIN,
        org: "large.example",
        email: "dmarc@large.example",
        reportId: "large",
        begin: todayS - DAY_S,
      },
      rows: Array.from({ length: rows }, (_, n) => ({ ip: `100.${64 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}` })),
    },
    to,
  );
