import { expect, test } from "bun:test";
import { createApps } from "../../../testing/app.ts";
import { SAMPLE_DAY_S, type SampleReport, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { domainsSchema } from "../../domain-schemas.ts";

const start = createApps();
const DAY_S = 86_400;

test("the list of domains has the figures of each, as its summary has them", async () => {
  const app = start();
  const key = app.newKey();
  const enrol = async (domain: string): Promise<string> => {
    const { body } = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain } });
    return (body.domain as { id: string }).id;
  };
  const give = async (daysAgo: number, { org, rows }: Pick<SampleReport, "org" | "rows">): Promise<void> => {
    const begin = SAMPLE_DAY_S - daysAgo * DAY_S;
    const made = { domain: "shop.example", reportId: `r${daysAgo}`, begin, end: begin + DAY_S - 1, org, rows };
    const { text } = await app.request("POST", "/v1/dmarc/reports", {
      key,
      body: sampleReportXml(made as SampleReport),
    });
    expect(text).toContain("stored");
  };
  const failing = { ip: "198.51.100.7", dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;
  const [id] = [await enrol("shop.example"), await enrol("quiet.example")];
  await give(0, { org: "one", rows: [{ count: 80 }, { ...failing, count: 3 }] });
  await give(6, { org: "two", rows: [{ count: 10 }] });
  await give(7, { org: "one", rows: [{ ...failing, count: 7 }] });
  await give(29, { org: "one", rows: [{ count: 1 }] });
  await give(30, { org: "one", rows: [{ count: 1_000 }] });

  const { domains } = domainsSchema.parse((await app.request("GET", "/v1/dmarc/domains", { key })).body);
  expect(domains.map(({ domain, figures }) => [domain, figures.last_7_days, figures.last_30_days])).toEqual([
    [
      "quiet.example",
      { messages: 0, aligned: 0, failing: 0, aligned_percent: null },
      { messages: 0, aligned: 0, failing: 0, aligned_percent: null },
    ],
    [
      "shop.example",
      { messages: 93, aligned: 90, failing: 3, aligned_percent: 96.8 },
      { messages: 101, aligned: 91, failing: 10, aligned_percent: 90.1 },
    ],
  ]);
  const { days } = domains[1]?.figures ?? expect.unreachable();
  expect([days.messages.length, days.messages[0], days.messages[22], days.messages[23], days.messages[29]]).toEqual([
    ...[30, 1, 7, 10, 83],
  ]);
  expect([days.failing[22], days.failing[29]]).toEqual([7, 3]);
  const { body: summary } = await app.request("GET", `/v1/dmarc/domains/${id}/summary`, { key });
  expect(summary).toMatchObject({ from: days.from, messages: 101, aligned: 91, failing: 10 });
});
