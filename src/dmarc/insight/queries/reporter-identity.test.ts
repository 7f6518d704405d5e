import { messagesNow, summaryNow } from "../../../testing/report-queries.ts";
import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../../testing/clock.ts";
import { SAMPLE_DAY_S, type SampleReport, sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness, INGEST_OWNER, type IngestHarness } from "../../../testing/ingest-harness.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { ingestionView } from "../../reports/ingest/ingestion-schemas.ts";
import { createDigestReader, dmarcDigestMail } from "../../alerts/rules/digest-mail.ts";
import { composeMail } from "../../../notifications/mail/compose-mail.ts";
import { MAIL_LINKS } from "../../../testing/mailing.ts";
import { RollupStore } from "../sources/rollup-store.ts";
import { ReportQueryStore } from "./report-query-store.ts";
import { RecordStore } from "./record-store.ts";
import { exportRecords, RECORD_COLUMNS } from "./records.ts";
import { readReports } from "./reports.ts";

const newHarness = createIngestHarness();
const DAY = Math.floor(SAMPLE_DAY_S / 86_400);
const range = { fromDay: DAY, toDay: DAY };

/** Mail is authenticated as the domain of its sender, but for `nobody@`. */
const start = (change: Partial<DomainRow> = {}) => {
  const harness = newHarness({
    clock: createTestClock((SAMPLE_DAY_S + 2 * 86_400) * 1000),
    authenticate: async ({ mailFrom }) => {
      const [user, from = null] = mailFrom?.split("@") ?? [];
      const authenticity = user === "fail" ? "fail" : user === "nobody" ? "unknown" : "pass";
      return { authenticity, from, spf: null, dkim: [], dmarc: null, message: "made up" };
    },
  });
  return { harness, domain: harness.enrol("example.com", change) };
};

const mailed = (harness: IngestHarness, mailFrom: string, report: SampleReport) =>
  harness.upload(sampleReportMail(report), { via: "smtp", client: "192.0.2.1", helo: "x", mailFrom });

const GENUINE = { org: "google.com", email: "noreply-dmarc-support@google.com", rows: [{ count: 10 }] };
const FORGED = { ...GENUINE, rows: [{ count: 900 }] };

const summaryOf = (harness: IngestHarness, domain: DomainRow) => {
  const store = new RollupStore(harness.db);
  return summaryNow(store, domain, range);
};

const reportsOf = async (harness: IngestHarness, domain: DomainRow, filters: object = {}) => {
  const store = new ReportQueryStore(harness.db);
  const page = await readReports(store, { domain: domain.number, range, filters }, { after: null, limit: 10 });
  return page.reports;
};

const GOOGLE = { name: "google.com", claimed_name: null, authenticated_as: "google.com", trusted: true };
const LIAR = {
  name: "attacker.example",
  claimed_name: "google.com",
  authenticated_as: "attacker.example",
  trusted: false,
};

describe("mail of attacker.example that says it is from google.com", () => {
  test.each(["first", "last"])(
    "is a reporter of its own in every view, and does not touch Google's: it comes %s",
    async (when) => {
      const { harness, domain } = start();
      const send = {
        forged: () => mailed(harness, "a@mail.attacker.example", FORGED),
        genuine: () => mailed(harness, "noreply-dmarc-support@google.com", GENUINE),
      };
      const order = when === "first" ? (["forged", "genuine"] as const) : (["genuine", "forged"] as const);
      for (const which of order) await send[which]();
      const reports = await reportsOf(harness, domain);
      expect(reports.filter(({ reporter }) => reporter.trusted)).toMatchObject([
        { org_name: "google.com", messages: 10, reporter: GOOGLE },
      ]);
      expect(harness.rollups()).toEqual(harness.recount());
      expect(messagesNow(new RollupStore(harness.db, { trustedOnly: true }), domain.number, range)).toBe(10);
    },
  );

  test("alone is shown as attacker.example that claims to be google.com", async () => {
    const { harness, domain } = start();
    const { row } = await mailed(harness, "a@mail.attacker.example", { ...FORGED, reportId: "other" });
    await mailed(harness, "x@google.com", GENUINE);
    expect((await reportsOf(harness, domain)).map(({ reporter }) => reporter)).toEqual([GOOGLE, LIAR]);
    expect((await reportsOf(harness, domain, { trusted: false })).map(({ reporter }) => reporter)).toEqual([LIAR]);
    expect(
      (await reportsOf(harness, domain, { reporter: "attacker.example" })).map(({ messages }) => messages),
    ).toEqual([900]);
    expect(summaryOf(harness, domain)).toMatchObject({
      ...{ reports: 2, reporters: 2, messages: 910, unauthenticated_messages: 900, unauthenticated_reports: 1 },
      unauthenticated_note:
        "1 of 2 reports, with 900 of 910 messages (98.9 %), came in mail that is not authenticated as the reporter's. They are counted here; advice ignores them.",
      top_reporters: [
        { org_name: "google.com", reporter: LIAR, messages: 900 },
        { org_name: "google.com", reporter: GOOGLE, messages: 10 },
      ],
    });
    const [finding] = ingestionView(harness.find(row.id), () => null).findings;
    expect(finding).toMatchObject({ outcome: "stored", org_name: "google.com", authenticated_as: "attacker.example" });
    expect(finding?.message).toContain(
      "Its mail is authenticated as attacker.example, but its report claims to be from google.com:",
    );
    const batches = exportRecords(
      new RecordStore(harness.db),
      { scope: { domain: domain.number }, range, filters: {}, names: new Map() },
      null,
    );
    const cells = (await Array.fromAsync(batches)).flat();
    const at = (column: (typeof RECORD_COLUMNS)[number]) => cells.map((row) => row[RECORD_COLUMNS.indexOf(column)]);
    expect([at("authenticated_as"), at("trusted")]).toEqual([
      ["attacker.example", "google.com"],
      [false, true],
    ]);
  });

  test("is named in the digest, with how much rests on it", async () => {
    const { harness, domain } = start();
    await mailed(harness, "a@attacker.example", { ...FORGED, reportId: "other" });
    await mailed(harness, "nobody@google.com", { ...FORGED, reportId: "third", rows: [{ count: 90 }] });
    const reading = new RollupStore(harness.db);
    const read = createDigestReader({
      reading,
      advise: async () => ({ stage: "monitoring", next: null }) as never,
    });
    const facts = await read(domain, { period: "daily", range });
    const { text } = composeMail(dmarcDigestMail([facts], 0), MAIL_LINKS);
    expect(text).toContain("2 reports from attacker.example (claims to be google.com), google.com (not authenticated)");
    expect(text).toContain("2 of 2 reports, with 990 of 990 messages (100 %), came in mail that is not authenticated");
  });

  test("never counts where authenticated reports are required", async () => {
    const { harness, domain } = start({ requireAuthenticReports: true });
    const { row } = await mailed(harness, "a@attacker.example", FORGED);
    expect(row).toMatchObject({ outcome: "quarantined", reason: "other_author" });
    const [finding] = ingestionView(harness.find(row.id), () => null).findings;
    expect(finding?.authenticated_as).toBe("attacker.example");
    expect(finding?.message).toContain(
      "is authenticated as attacker.example, but its report claims to be from google.com",
    );
    expect((await mailed(harness, "x@google.com", GENUINE)).row.outcome).toBe("stored");
    expect(summaryOf(harness, domain)).toMatchObject({ messages: 10, unauthenticated_note: null });
  });
});

describe("a name that is no domain", () => {
  const named = (email: string, count: number) => ({ org: "Mail Team", email, reportId: "same", rows: [{ count }] });

  test("belongs to whose contact address it stands with: nobody else blocks its reports", async () => {
    const { harness, domain } = start();
    await mailed(harness, "a@attacker.example", named("a@attacker.example", 900));
    expect((await mailed(harness, "a@receiver.example", named("a@receiver.example", 10))).row.outcome).toBe("stored");
    const reporters = (await reportsOf(harness, domain)).map(({ reporter }) => reporter.authenticated_as);
    expect(reporters.toSorted()).toEqual(["attacker.example", "receiver.example"]);
  });

  test("of a large reporter is believed from that reporter only", async () => {
    const { harness, domain } = start();
    const ses = { org: "AMAZON-SES", email: "a@attacker.example", rows: [{ count: 900 }] };
    await mailed(harness, "a@attacker.example", ses);
    expect((await reportsOf(harness, domain))[0]?.reporter).toEqual({ ...LIAR, claimed_name: "AMAZON-SES" });
    await mailed(harness, "a@amazonses.com", { ...ses, email: "postmaster@amazonses.com", rows: [{ count: 10 }] });
    expect(messagesNow(new RollupStore(harness.db, { trustedOnly: true }), domain.number, range)).toBe(10);
  });

  test("is known by its report from before contact addresses counted", async () => {
    const { harness } = start();
    const report = named("a@receiver.example", 10);
    const { row } = await harness.upload(sampleReportMail(report));
    const [stored] = harness.all<{ sameness: string }>("SELECT sameness FROM dmarc_reports");
    const former = await harness.upload(sampleReportMail({ ...report, email: "", reportId: "former" }));
    expect([row.outcome, former.row.outcome]).toEqual(["stored", "stored"]);
    const [, bare] = harness.all<{ sameness: string }>("SELECT sameness FROM dmarc_reports ORDER BY number");
    expect(bare?.sameness).not.toBe(stored?.sameness);
    const again = await harness.upload(sampleReportMail({ ...report, reportId: "former" }));
    expect(again.row.outcome).toBe("duplicate");
  });
});

describe("a mail that the owner accepts", () => {
  test.each(["fail@google.com", "a@attacker.example", "nobody@google.com"])(
    "counts as trusted from then on: %s",
    async (from) => {
      const { harness, domain } = start();
      const { row } = await mailed(harness, from, GENUINE);
      await harness.ingestions.readAgain(INGEST_OWNER, [row.id]);
      const trusted = () => messagesNow(new RollupStore(harness.db, { trustedOnly: true }), domain.number, range);
      expect([trusted(), harness.find(row.id).acceptedAtMs]).toEqual([0, null]);
      await harness.ingestions.readAgain(INGEST_OWNER, [row.id], undefined, { isAccepted: true });
      expect(harness.find(row.id)).toMatchObject({
        outcome: "stored",
        reason: null,
        acceptedAtMs: harness.clock.nowMs(),
      });
      expect([trusted(), summaryOf(harness, domain).messages]).toEqual([10, 10]);
      expect(harness.rollups()).toEqual(harness.recount());
      await harness.clock.advance(1_000);
      await harness.ingestions.readAgain(INGEST_OWNER, [row.id]);
      expect([trusted(), harness.count("dmarc_reports")]).toEqual([10, 1]);
    },
  );

  test("did come by mail: a file is trusted already", async () => {
    const { harness } = start();
    const { row } = await harness.upload(sampleReportMail(GENUINE));
    expect(harness.ingestions.retry(INGEST_OWNER, row.id, { isAccepted: true })).rejects.toThrow(
      "Only mail can be accepted",
    );
  });
});
