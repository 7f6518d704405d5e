/** Ninety days of DMARC monitoring: domains, their records as they change, and all kinds of reports. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sampleReportMail, sampleReportXml } from "../../src/testing/dmarc-reports.ts";
import { SmtpTestClient } from "../../src/testing/smtp-test-client.ts";
import type { Api } from "./api.ts";
import { HOSTILE } from "./hostile.ts";
import { publishSenders, reportsOf } from "./story-dmarc-mail.ts";
import { REPORT_HOST, type World } from "./world.ts";

const FIXTURES = join(import.meta.dir, "../../fixtures/dmarc/reports");
const PARTS_MAX = 20;
const DAY_MS = 86_400_000;

interface Enrolled {
  readonly domain: { readonly id: string; readonly reporting_address: string };
}

const MAIN = "kaffeewerk-lab.com";

export class DmarcStory {
  readonly #ids = new Map<string, string>();
  readonly #addresses = new Map<string, string>();
  readonly #policies: Record<string, string> = {};

  constructor(
    private readonly api: Api,
    private readonly world: World,
    /** The end of the story. */
    private readonly nowMs: number,
  ) {}

  /** The domains whose story begins `daysAgo` days ago, and what changes in the DNS. */
  async day(daysAgo: number): Promise<void> {
    if (daysAgo === 90) await this.#begin();
    if (daysAgo === 80) await this.#enrol("parked-lab.com", { policy: "reject", label: "parked", sends_mail: false });
    if (daysAgo === 60) await this.#enrol("hotelmar-lab.com", { policy: "none", label: "sister company" });
    if (daysAgo === 25) await this.#enrol("ticketo-lab.com", { policy: "none", label: HOSTILE.script });
    if (daysAgo === 62) this.#publish(MAIN, "quarantine", "; pct=25");
    if (daysAgo === 34) this.#publish(MAIN, "quarantine", "; sp=reject; adkim=s");
    await this.#upload(daysAgo);
  }

  /** One domain is waiting for its record, one has two records, and one no longer sends its reports here. */
  async end(): Promise<void> {
    await this.api.post("/v1/dmarc/domains", { domain: "libreria-lab.com" });
    this.world.zone.publish({
      "_dmarc.acme-lab.com": { TXT: ["v=DMARC1; p=none", `v=DMARC1; p=reject; x=${HOSTILE.attribute}`] },
    });
    await this.api.post("/v1/dmarc/domains", { domain: "acme-lab.com" });
    this.world.zone.publish({
      "_dmarc.hotelmar-lab.com": { TXT: ["v=DMARC1; p=none; rua=mailto:it@hotelmar-lab.com"] },
    });
    await this.#verify("hotelmar-lab.com");
  }

  /** TLS reports, failure reports, mails with and without authentication, and files that are no report. */
  async others(): Promise<void> {
    const file = (...path: string[]) => readFileSync(join(FIXTURES, ...path));
    await this.api.patch(`/v1/dmarc/domains/${this.#id(MAIN)}`, { store_failure_reports: true });
    const failure = file("mails", "failure-report.eml")
      .toString()
      .replaceAll(/example\.com/gi, MAIN)
      .replace("Reporter/1.0", `Reporter ${HOSTILE.script}`);
    const broken = [
      "xml/truncated-in-a-record.xml",
      "hostile/doctype.xml",
      "archives/page.html",
      "archives/zip-encrypted.zip",
    ];
    await this.#send([
      Buffer.from(failure),
      ...[1, 2].map((day) => this.#tlsReport(day)),
      ...broken.map((path) => file(...path.split("/"))),
      // Of a domain that nobody has enrolled.
      sampleReportXml({ domain: "unknown-lab.com", reportId: "unknown" }),
    ]);
    await this.#mail("google.example", "v=spf1 ip4:127.0.0.1 -all");
    await this.#mail("unsigned.example", "v=spf1 -all");
  }

  #id(domain: string): string {
    return this.#ids.get(domain) ?? "";
  }

  async #begin(): Promise<void> {
    publishSenders(this.world.zone);
    await this.#enrol(MAIN, { policy: "none", label: "shop" });
    this.world.zone.publish({
      [MAIN]: {
        MX: [[10, "mx.kaffeewerk-lab.com"]],
        TXT: [
          "v=spf1 ip4:81.169.10.20 ip4:81.169.10.21 include:_spf.google.com include:gone.example ~all",
          `site-verification=${HOSTILE.script}`,
        ],
      },
      "_spf.google.com": { TXT: ["v=spf1 ip4:209.85.128.0/17 ~all"] },
      "_smtp._tls.kaffeewerk-lab.com": { TXT: [`v=TLSRPTv1; rua=mailto:${this.#addresses.get(MAIN)}`] },
      "mail._domainkey.kaffeewerk-lab.com": { TXT: ["v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDC"] },
    });
  }

  async #enrol(
    domain: string,
    { policy, ...settings }: { policy: string; label: string; sends_mail?: boolean },
  ): Promise<void> {
    const { label, ...more } = settings;
    const enrolled = await this.api.post<Enrolled>("/v1/dmarc/domains", { domain, label });
    this.#ids.set(domain, enrolled.domain.id);
    this.#addresses.set(domain, enrolled.domain.reporting_address);
    this.world.zone.publish({ [`${domain}._report._dmarc.${REPORT_HOST}`]: { TXT: ["v=DMARC1;"] } });
    this.#publish(domain, policy);
    if (Object.keys(more).length > 0) await this.api.patch(`/v1/dmarc/domains/${enrolled.domain.id}`, more);
    const webhook = { webhook_url: this.world.webhooks.url("/orders"), recipients: ["ops@kaffeewerk-lab.com"] };
    await this.api.patch(`/v1/dmarc/domains/${enrolled.domain.id}`, webhook);
    await this.#verify(domain);
  }

  #publish(domain: string, policy: string, more = ""): void {
    this.#policies[domain] = policy;
    const rua = `mailto:dmarc@${domain},mailto:${this.#addresses.get(domain)}`;
    this.world.zone.publish({ [`_dmarc.${domain}`]: { TXT: [`v=DMARC1; p=${policy}${more}; rua=${rua}`] } });
  }

  async #verify(domain: string): Promise<void> {
    await this.api.post(`/v1/dmarc/domains/${this.#id(domain)}/verify`);
  }

  /** The reports of the day before, as they come in the morning. */
  async #upload(daysAgo: number): Promise<void> {
    if (daysAgo >= 90) return;
    const reports = reportsOf(daysAgo + 1, this.nowMs, this.#policies);
    await this.#send(reports.map((report) => sampleReportXml(report)));
  }

  async #send(files: ReadonlyArray<string | Uint8Array>): Promise<void> {
    for (let at = 0; at < files.length; at += PARTS_MAX) {
      const form = new FormData();
      for (const [n, file] of files.slice(at, at + PARTS_MAX).entries()) {
        form.append(
          `f${n}`,
          new Blob([typeof file === "string" ? file : new Uint8Array(file)]),
          `report-${at + n}${HOSTILE.attribute}.xml`,
        );
      }
      await this.api.send("/v1/dmarc/reports", { body: form });
    }
  }

  #tlsReport(daysAgo: number): Buffer {
    const day = new Date(this.nowMs - daysAgo * DAY_MS).toISOString().slice(0, 10);
    const policy = {
      "policy-type": "sts",
      "policy-string": ["version: STSv1", "mode: enforce", `mx: mx.${MAIN}`],
      "policy-domain": MAIN,
      "mx-host": [`mx.${MAIN}`],
    };
    const failure = {
      "result-type": "certificate-expired",
      "sending-mta-ip": "209.85.220.41",
      "receiving-mx-hostname": `mx.${MAIN}`,
      "failed-session-count": 31,
    };
    return Buffer.from(
      JSON.stringify({
        ...{
          "organization-name": `Google Inc. ${HOSTILE.attribute}`,
          "contact-info": "smtp-tls-reporting@google.com",
          "report-id": `${day}_${MAIN}`,
        },
        "date-range": { "start-datetime": `${day}T00:00:00Z`, "end-datetime": `${day}T23:59:59Z` },
        policies: [
          {
            policy,
            summary: { "total-successful-session-count": 321, "total-failure-session-count": 31 },
            "failure-details": [failure],
          },
        ],
      }),
    );
  }

  /** One report mail to the receiver, from a domain with this SPF record. */
  async #mail(reporter: string, spf: string): Promise<void> {
    this.world.zone.publish({ [reporter]: { TXT: [spf] } });
    const to = this.#addresses.get(MAIN) ?? "";
    const begin = Math.floor(this.nowMs / DAY_MS - 1) * 86_400;
    const rows = [
      { ip: "81.169.10.20", count: 12 },
      { ip: "198.2.128.10", count: 3, dkim: "fail", spf: "fail" } as const,
    ];
    const report = {
      domain: MAIN,
      org: reporter,
      email: `dmarc@${reporter}`,
      reportId: `mail-${reporter}`,
      begin,
      rows,
    };
    const client = new SmtpTestClient(this.world.reports.port, this.world.reports.ip);
    await client.readReply();
    await client.codes(`EHLO mail.${reporter}`, `MAIL FROM:<dmarc@${reporter}>`, `RCPT TO:<${to}>`, "DATA");
    client.send(`${sampleReportMail(report, to).toString("latin1")}\r\n`);
    const code = await client.codes(".", "QUIT");
    client.destroy();
    if (!code.startsWith("250")) throw new Error(`the report mail of ${reporter} was not accepted: ${code}`);
  }
}
