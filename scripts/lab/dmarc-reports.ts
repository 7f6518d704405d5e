import type { Api, Enrolled } from "./dmarc-api.ts";
import { type Claim, claim } from "./claims.ts";
import { DOMAINS, SEEN, type Seen, expectedOf, lineOf } from "./dmarc-truth.ts";
import { REPORTERS } from "./hosts.ts";
import { z } from "zod";

const THEME = "DMARC reports";
const DAY_MS = 86_400_000;
/** Mails are judged once a minute. */
const ARRIVAL_MS_MAX = 75_000;

const report = z.object({
  id: z.string(),
  org_name: z.string().nullable(),
  policy_domain: z.string(),
  rows: z.number(),
  messages: z.number(),
  aligned: z.number(),
  authenticity: z.object({ result: z.string() }).nullable(),
});
type Report = z.output<typeof report>;

const result = z.object({ domain: z.string().nullable(), result: z.string() });
const record = z.object({
  source_ip: z.string(),
  count: z.number(),
  disposition: z.string().nullable(),
  dkim: z.string().nullable(),
  spf: z.string().nullable(),
  aligned: z.boolean(),
  forwarded: z.boolean(),
  header_from: z.string().nullable(),
  envelope_from: z.string().nullable(),
  reasons: z.array(z.object({ type: z.string(), comment: z.string().nullable() })),
  dkim_results: z.array(result.extend({ selector: z.string().nullable() })),
  spf_results: z.array(result),
  report: z.object({ id: z.string() }),
});

const summary = z.object({
  reports: z.number(),
  reporters: z.number(),
  messages: z.number(),
  aligned: z.number(),
  failing: z.number(),
  dkim_aligned: z.number(),
  spf_aligned: z.number(),
  forwarded: z.number(),
  dispositions: z.object({ none: z.number(), quarantine: z.number(), reject: z.number() }),
});
const Series = z.object({ points: z.array(z.object({ date: z.string(), reports: z.number(), messages: z.number() })) });
const source = z.object({ key: z.string(), messages: z.number(), aligned: z.number() });

/** Yesterday and today: what both reporters tell of. */
const range = (): string => {
  const isoDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  return `from=${isoDay(Date.now() - 2 * DAY_MS)}&to=${isoDay(Date.now())}`;
};

const seenAt = (domain: string): readonly Seen[] => SEEN.filter(({ policy }) => DOMAINS[policy] === domain);

/** The reports that there must be: one of each reporter for each domain that it takes for the policy's. */
const expectedReports = (domain: string): readonly string[] => {
  const groups = Map.groupBy(seenAt(domain), (seen) => `${seen.reporter} ${expectedOf(seen).policyDomain}`);
  return [...groups].map(([, rows]) => {
    const [first] = rows;
    const { org } = REPORTERS[first?.reporter ?? "mailDmarc"];
    const messages = rows.reduce((sum, { count }) => sum + count, 0);
    const aligned = rows.reduce((sum, row) => sum + (isAligned(row) ? row.count : 0), 0);
    const authenticity = first?.reporter === "mailDmarc" ? "pass" : "unknown";
    const policyDomain = first === undefined ? "" : expectedOf(first).policyDomain;
    return `${org} ${policyDomain}: ${rows.length} rows, ${messages} messages, ${aligned} aligned, ${authenticity}`;
  });
};

const isAligned = ({ expected: [, dkim, spf] }: Seen): boolean => dkim === "pass" || spf === "pass";
const isForwarded = (seen: Seen): boolean =>
  !isAligned(seen) && /^(?:mailing_list|trusted_forwarder)|arc=pass/.test(seen.override ?? "");

const reportLine = ({ org_name, policy_domain, rows, messages, aligned, authenticity }: Report): string =>
  `${org_name} ${policy_domain}: ${rows} rows, ${messages} messages, ${aligned} aligned, ${authenticity?.result}`;

/** Waits until every mail of the reporters has become a report whose mail was judged. */
const untilArrived = async (api: Api, id: string, count: number): Promise<readonly Report[]> => {
  for (const endsAtMs = Date.now() + ARRIVAL_MS_MAX; ; await Bun.sleep(100)) {
    const reports = await api.all(report, "reports", `/domains/${id}/reports?${range()}`);
    const isJudged = reports.every(({ authenticity }) => authenticity?.result !== "pending");
    if ((reports.length >= count && isJudged) || Date.now() > endsAtMs) return reports;
  }
};

/** A cell for each line that has to be there, and one for each that has not. */
const matched = (what: string, expected: readonly string[], got: readonly string[]): Claim[] => {
  const left = [...got];
  const cells = expected.map((line) => {
    const at = left.indexOf(line);
    if (at !== -1) left.splice(at, 1);
    return { theme: THEME, what, expected: line, got: at === -1 ? "not there" : line, right: at !== -1 };
  });
  return [...cells, ...left.map((line) => claim(THEME, what, "not there", line))];
};

const expectedSummary = (domain: string): string => {
  const rows = seenAt(domain);
  const sum = (isCounted: (seen: Seen) => boolean) =>
    rows.reduce((total, row) => total + (isCounted(row) ? row.count : 0), 0);
  const disposed = (word: string) => sum(({ expected: [disposition] }) => disposition === word);
  return JSON.stringify({
    ...{ reports: expectedReports(domain).length, reporters: 2, messages: sum(() => true) },
    ...{ aligned: sum(isAligned), failing: sum((row) => !isAligned(row)) },
    dkim_aligned: sum(({ expected: [, dkim] }) => dkim === "pass"),
    spf_aligned: sum(({ expected: [, , spf] }) => spf === "pass"),
    forwarded: sum(isForwarded),
    dispositions: { none: disposed("none"), quarantine: disposed("quarantine"), reject: disposed("reject") },
  });
};

const judgeDomain = async (api: Api, { domain: { id, domain } }: Enrolled): Promise<Claim[]> => {
  const path = `/domains/${id}`;
  const expected = expectedReports(domain);
  const reports = await untilArrived(api, id, expected.length);
  const policyDomains = new Map(reports.map((each) => [each.id, each.policy_domain]));
  const records = await api.all(record, "records", `${path}/records?${range()}`);
  const lines = records.map((row) =>
    lineOf({
      ...{ policyDomain: policyDomains.get(row.report.id) ?? "", ip: row.source_ip, count: row.count },
      ...{ disposition: row.disposition, dkim: row.dkim, spf: row.spf, headerFrom: row.header_from },
      reasons: row.reasons.map(({ type, comment }) => `${type} ${comment}`),
      dkimResults: row.dkim_results.map((each) => `${each.domain} ${each.selector} ${each.result}`),
      spfResults: row.spf_results.map((each) => `${each.domain} ${each.result}`),
    }),
  );
  const rows = seenAt(domain);
  const { points } = await api.ask(Series, "GET", `${path}/timeseries?${range()}`);
  const sources = await api.all(source, "sources", `${path}/sources?${range()}`);
  const total = String(rows.reduce((sum, { count }) => sum + count, 0));
  const sumOf = (list: readonly { readonly messages: number }[]) =>
    String(list.reduce((sum, { messages }) => sum + messages, 0));
  const forwarded = rows.filter(isForwarded).map(({ ip }) => ip);
  const shownForwarded = records.filter((row) => row.forwarded).map(({ source_ip }) => source_ip);
  return [
    ...matched(`${domain}, report`, expected, reports.map(reportLine)),
    ...matched(`${domain}, row`, rows.map(expectedOf).map(lineOf), lines),
    claim(
      THEME,
      `${domain}, summary`,
      expectedSummary(domain),
      JSON.stringify(await api.ask(summary, "GET", `${path}/summary?${range()}`)),
    ),
    claim(THEME, `${domain}, messages by day`, total, sumOf(points)),
    claim(THEME, `${domain}, messages by source`, total, sumOf(sources)),
    claim(THEME, `${domain}, forwarded`, forwarded.toSorted().join(" "), shownForwarded.toSorted().join(" ")),
  ];
};

/** Holds what the interface says of the reports against the messages that the reporters saw, row by row. */
export const judgeReports = async (api: Api, enrolled: ReadonlyMap<string, Enrolled>): Promise<readonly Claim[]> => {
  const cells: Claim[] = [];
  for (const domain of Object.values(DOMAINS)) {
    const found = enrolled.get(domain);
    if (found !== undefined) cells.push(...(await judgeDomain(api, found)));
  }
  return cells;
};
