import { z } from "zod";
import { createApps } from "./app.ts";
import { signIn } from "./dashboard.ts";
import { type SampleReport, sampleReportXml } from "./dmarc-reports.ts";
import type { ZoneRecords } from "./dns-zone.ts";

const REPORT_HOST = "reports.example.net";
const DAY_S = 86_400;
const enrolled = z.object({ domain: z.object({ id: z.string(), reporting_address: z.string() }) });

/** The dashboard of a service with a monitored domain, for the tests of one file. */
export const createDmarcPageTests = () => {
  const start = createApps();
  return async () => {
    const zone: Record<string, ZoneRecords> = {};
    const app = start({ zone, settings: { REPORT_HOST } });
    const visitor = await signIn(app);
    const key = app.newKey({ mode: "live" });
    const todayS = Math.floor(app.clock.nowMs() / 1_000 / DAY_S) * DAY_S;
    let serial = 0;
    return {
      ...{ app, visitor, key, zone },
      /** Enrolls a domain, publishes its record and has it checked; returns its id. */
      async enrol(domain = "example.com", tags = "p=none"): Promise<string> {
        const response = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain } });
        const { id, reporting_address: address } = enrolled.parse(response.body).domain;
        zone[`_dmarc.${domain}`] = { TXT: [`v=DMARC1; ${tags}; rua=mailto:${address}`] };
        zone[`${domain}._report._dmarc.${REPORT_HOST}`] = { TXT: ["v=DMARC1;"] };
        await app.request("POST", `/v1/dmarc/domains/${id}/verify`, { key });
        return id;
      },
      /** Uploads a report about a day, counted back from today. */
      async report(daysAgo: number, report: SampleReport): Promise<void> {
        const xml = sampleReportXml({ reportId: `r${++serial}`, begin: todayS - daysAgo * DAY_S, ...report });
        await app.request("POST", "/v1/dmarc/reports", { key, body: xml });
      },
      /** Sets the confirmed reverse names of addresses; null: they have none. */
      nameAddresses(names: Readonly<Record<string, string | null>>): void {
        for (const [ip, name] of Object.entries(names))
          app.db.sqlite.run(
            "UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = 1, asn = 64500, as_name = ? WHERE ip = ?",
            [name, name === null ? 0 : 1, "<i>AS</i>", ip],
          );
      },
    };
  };
};

export type DmarcPageTest = Awaited<ReturnType<ReturnType<typeof createDmarcPageTests>>>;
