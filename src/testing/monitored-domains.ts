import { afterEach } from "bun:test";
import { openDb } from "../db/open.ts";
import { createDomainCheck } from "../dmarc/domains/domain-check.ts";
import { createDomainPlatforms, type DomainPlatformOptions } from "../dmarc/domains/domain-platform.ts";
import { Domains, type DomainsDeps } from "../dmarc/domains/domains.ts";
import { DomainStore, type DomainOwner, type DomainRow } from "../dmarc/domains/domain-store.ts";
import { historyView } from "../dmarc/domains/domain-view.ts";
import type { Alert } from "../dmarc/domains/raise.ts";
import type { UrlChange } from "../webhooks/webhook-urls.ts";
import { createTestClock } from "./clock.ts";
import { madeDomain } from "./dmarc-domain.ts";
import { createZoneResolver, type ZoneFailure, type ZoneRecords } from "./dns-zone.ts";

export const REPORT_HOST = "reports.example.net";
export const LIVE: DomainOwner = { accountId: "account", mode: "live" };
export const TEST: DomainOwner = { accountId: "account", mode: "test" };

/** Domains over a literal zone in which reports are authorised, for the tests of one file. */
export const createDomainWorlds = () => {
  const closers: Array<() => void> = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  return (
    settings: Partial<
      Pick<DomainsDeps, "hasMail" | "recipientDomains" | "check"> &
        Pick<DomainPlatformOptions, "reportHost" | "mailHost">
    > = {},
  ) => {
    const { reportHost = REPORT_HOST, hasMail = true, mailHost = null, recipientDomains = [] } = settings;
    const opened = openDb(":memory:");
    if (!opened.ok) throw new Error(opened.error.kind);
    const db = opened.value;
    closers.push(() => db.close());
    const clock = createTestClock();
    const zone: Record<string, ZoneRecords | ZoneFailure> = {};
    const resolver = createZoneResolver(zone);
    const store = new DomainStore(db);
    const alerts: Alert[] = [];
    const turnedOn: string[] = [];
    const moved: UrlChange[] = [];
    const platforms = createDomainPlatforms({ resolver, reportHost, mailHost });
    const domains = new Domains(
      { db, clock },
      {
        store,
        platforms,
        check: settings.check ?? createDomainCheck(clock, platforms),
        raise: (_tx, _domain, alert) => alerts.push(alert) > 0,
        urls: {
          enable: (_tx, _owner, url) => void turnedOn.push(url),
          move: (_tx, _owner, change) => void moved.push(change),
          isDisabled: (_owner, url) => url.includes("gone"),
        },
        hasMail,
        recipientDomains,
      },
    );

    const find = (id: string): DomainRow => {
      const row = store.findById(id);
      if (row === undefined) throw new Error(`no domain ${id}`);
      return row;
    };
    const enrol = async (domain: string, owner = LIVE) =>
      domains.enrol(owner, { domain, label: null, webhookUrl: null, recipients: [] });
    const publish = (domain: string, ...texts: string[]): void => {
      zone[`_dmarc.${domain}`] = { TXT: texts };
      zone[`${domain}._report._dmarc.${REPORT_HOST}`] ??= { TXT: ["v=DMARC1;"] };
    };

    return {
      db,
      clock,
      zone,
      resolver,
      store,
      platforms,
      domains,
      /** What was raised, oldest first. */
      alerts,
      moved,
      turnedOn,
      find,
      enrol,
      /** Publishes texts at the domain's name, and that reports about it may be sent to us. */
      publish,
      /** An enrolled domain that has published what it was told and is active. */
      async activate(domain = "example.com", tags = "p=reject"): Promise<DomainRow> {
        const { domain: row } = await enrol(domain);
        publish(domain, `v=DMARC1; ${tags}; rua=mailto:${row.token}@${REPORT_HOST}`);
        await domains.verify(LIVE, row.id);
        alerts.length = 0;
        return find(row.id);
      },
      /** The check that the timetable makes. */
      async checkScheduled(id: string): Promise<DomainRow> {
        await domains.checkScheduled(find(id));
        return find(id);
      },
      history: (id: string) => domains.history(LIVE, id, { before: null, limit: 100 }).map(historyView),
      /** A row as the store takes it, with what a test wants to differ. */
      insert: (change: Partial<DomainRow> = {}): DomainRow => {
        const nowMs = clock.nowMs();
        const times = { nextCheckAtMs: nowMs, createdAtMs: nowMs, updatedAtMs: nowMs };
        return db.transact((tx) => store.insert(tx, madeDomain({ ...LIVE, status: "pending", ...times, ...change })));
      },
    };
  };
};
