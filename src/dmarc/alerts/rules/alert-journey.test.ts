import { describe, expect, test } from "bun:test";
import { createApps } from "../../../testing/app.ts";
import { SAMPLE_DAY_S, type SampleReport, type SampleRow, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { adviceSchema } from "../../insight/advice/advice-model.ts";
import { alertsSchema } from "../../finding-routes.ts";

const start = createApps();
const DAY_S = 86_400;

describe("reports that are uploaded through the API", () => {
  test("raise alerts once, which can be read, and make the advice", async () => {
    const app = start();
    const key = app.newKey();
    const { body } = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "shop.example" } });
    const { id } = body.domain as { id: string };
    await app.request("POST", `/v1/dmarc/domains/${id}/verify`, { key });
    const give = async (report: SampleReport) => {
      const xml = sampleReportXml({ domain: "shop.example", ...report });
      const answer = await app.request("POST", "/v1/dmarc/reports", { key, body: xml });
      expect([answer.status, answer.text.includes("stored")]).toEqual([200, true]);
    };
    for (let n = 0; n < 14; n++) {
      const begin = SAMPLE_DAY_S - n * DAY_S;
      await give({ reportId: `a${n}`, begin, end: begin + DAY_S - 1, rows: [{ count: 150 }] });
    }
    const { raiseDmarcAlerts } = app.service.dmarc.jobs;
    await raiseDmarcAlerts();
    const alerts = async () =>
      alertsSchema
        .parse((await app.request("GET", `/v1/dmarc/domains/${id}/alerts`, { key })).body)
        .alerts.filter(({ rule }) => rule !== "status_changed");
    expect(await alerts()).toEqual([]);

    const forged = { ip: "198.51.100.7", count: 90, dkim: "fail", spf: "fail" } as const;
    await give({
      reportId: "b",
      rows: [{ ...forged, dkimResults: [], spfResults: ["spammer.example pass"] }],
    });
    await raiseDmarcAlerts();
    await raiseDmarcAlerts();
    expect((await alerts()).map(({ rule, subject }) => `${rule} ${subject}`)).toEqual([
      "new_source org:spammer.example",
    ]);

    const advice = adviceSchema.parse((await app.request("GET", `/v1/dmarc/domains/${id}/advice`, { key })).body);
    expect(advice).toMatchObject({ stage: expect.any(String), ready: false });
    expect(advice.requirements.find(({ code }) => code === "unknown_sources")?.met).toBe(false);
  });

  test("show why mail fails: which selector, since which day", async () => {
    const app = start();
    const key = app.newKey();
    const { body } = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "shop.example" } });
    const { id } = body.domain as { id: string };
    const rows = (result: "pass" | "fail"): readonly SampleRow[] => [
      {
        ip: "192.0.2.1",
        count: 150,
        spf: "fail",
        spfResults: ["brevo.com pass"],
        dkim: result,
        dkimResults: [`shop.example ${result} mail`],
      },
      { ip: "192.0.2.2", count: 150, dkimResults: ["shop.example pass google"] },
    ];
    for (let n = 0; n < 16; n++) {
      const begin = SAMPLE_DAY_S - n * DAY_S;
      const xml = sampleReportXml({
        domain: "shop.example",
        reportId: `a${n}`,
        begin,
        end: begin + DAY_S - 1,
        rows: rows(n < 2 ? "fail" : "pass"),
      });
      await app.request("POST", "/v1/dmarc/reports", { key, body: xml });
    }
    await app.service.dmarc.jobs.raiseDmarcAlerts();
    const answer = await app.request("GET", `/v1/dmarc/domains/${id}/alerts`, { key });
    const spikes = alertsSchema.parse(answer.body).alerts.filter(({ rule }) => rule === "failure_spike");
    expect(spikes.map(({ subject, summary }) => [subject, summary])).toEqual([
      [
        "service:brevo",
        "Brevo: 100 % of the mail fails DMARC, usually 0 %: DKIM signatures of shop.example with selector mail have failed since 2025-12-31 (fail)",
      ],
    ]);
  });

  test.each([
    ["of a reporter that always sees as many failures, when it is the first to report", 60, false],
    ["that this reporter sees more of than before", 10, true],
  ])("raise an alert about failures only if the same reporters see a rise: %s", async (_, alignedNow, isAlerted) => {
    const app = start();
    const key = app.newKey();
    const { body } = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "shop.example" } });
    const { id } = body.domain as { id: string };
    const report = async (org: string, daysAgo: number, aligned: number) => {
      const begin = SAMPLE_DAY_S - daysAgo * DAY_S;
      const rows: SampleRow[] = [
        { count: aligned },
        { count: 100 - aligned, dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] },
      ];
      const period = { begin, end: begin + DAY_S - 1 };
      const xml = sampleReportXml({ domain: "shop.example", org, reportId: `${org}${daysAgo}`, ...period, rows });
      await app.request("POST", "/v1/dmarc/reports", { key, body: xml });
    };
    for (let daysAgo = 4; daysAgo < 18; daysAgo++) {
      await report("strict.example", daysAgo, 60);
      for (const org of ["a.example", "b.example"]) await report(org, daysAgo, 100);
    }
    for (const daysAgo of [2, 3]) await report("strict.example", daysAgo, alignedNow);
    await app.service.dmarc.jobs.raiseDmarcAlerts();
    const { body: listed } = await app.request("GET", `/v1/dmarc/domains/${id}/alerts`, { key });
    expect(alertsSchema.parse(listed).alerts.some(({ rule }) => rule === "failure_spike")).toBe(isAlerted);
  });

  test("raise no alert about a receiver that could not look up keys", async () => {
    const app = start();
    const key = app.newKey();
    const { body } = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "shop.example" } });
    const { id } = body.domain as { id: string };
    for (let n = 0; n < 16; n++) {
      const begin = SAMPLE_DAY_S - n * DAY_S;
      const result = n < 2 ? "temperror" : "pass";
      const row: SampleRow = {
        ...{ ip: "192.0.2.1", count: 150, dkim: n < 2 ? "fail" : "pass", spf: "fail" },
        ...{ dkimResults: [`shop.example ${result} mail`], spfResults: [] },
      };
      const xml = sampleReportXml({
        domain: "shop.example",
        reportId: `a${n}`,
        begin,
        end: begin + DAY_S - 1,
        rows: [row],
      });
      await app.request("POST", "/v1/dmarc/reports", { key, body: xml });
    }
    await app.service.dmarc.jobs.raiseDmarcAlerts();
    const answer = await app.request("GET", `/v1/dmarc/domains/${id}/alerts`, { key });
    expect(alertsSchema.parse(answer.body).alerts.map(({ rule }) => rule)).not.toContain("failure_spike");
  });
});
