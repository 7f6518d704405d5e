import { afterEach } from "bun:test";
import { type Db, openDb } from "../foundation/db/open.ts";
import { createDomainCheck } from "../dmarc/records/domains/domain-check.ts";
import { createDomainPlatforms, type DomainPlatformOptions } from "../dmarc/records/domains/domain-platform.ts";
import { Domains, type DomainsDeps, historyView } from "../dmarc/records/domains/domains.ts";
import { DomainStore, type DomainOwner, type DomainRow } from "../dmarc/records/domains/domain-store.ts";
import { ALERT_RULES } from "../dmarc/alerts/rules/alert-rules.ts";
import type { Alert } from "../dmarc/records/domains/alert-store.ts";
import type { UrlChange } from "../notifications/webhooks/url-store.ts";
import { createTestClock } from "./clock.ts";
import { madeDomain } from "./dmarc-domain.ts";
import { createZoneResolver, type ZoneFailure, type ZoneRecords } from "./dns-zone.ts";

export const REPORT_HOST = "reports.example.net";
export const LIVE: DomainOwner = { accountId: "account", mode: "live" };
export const TEST: DomainOwner = { accountId: "account", mode: "test" };

type HarnessSettings = Partial<
  Pick<DomainsDeps, "hasMail" | "recipientDomains" | "check"> &
    Pick<DomainPlatformOptions, "reportHost" | "mailbox" | "mailHost">
>;

/** Domains over a literal zone in which reports are authorized, for the tests of one file. */
export const createDomainHarness = () => {
  const closers: Array<() => void> = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });
  return (settings: HarnessSettings = {}) => {
    const opened = openDb(":memory:");
    if (!opened.ok) throw new Error(opened.error.kind);
    closers.push(() => opened.value.close());
    const parts = composeTestDomains(opened.value, settings);
    return { ...parts, ...domainHelpers(parts) };
  };
};

/** `Domains` with its collaborators; alerts and changes of webhook URLs are recorded. */
const composeTestDomains = (db: Db, settings: HarnessSettings) => {
  const { reportHost = REPORT_HOST, hasMail = true, mailHost = null, recipientDomains = [] } = settings;
  const { mailbox = null } = settings;
  const clock = createTestClock();
  const zone: Record<string, ZoneRecords | ZoneFailure> = {};
  const resolver = createZoneResolver(zone);
  const store = new DomainStore(db);
  const alerts: Alert[] = [];
  const turnedOn: string[] = [];
  const moved: UrlChange[] = [];
  const platforms = createDomainPlatforms({ resolver, reportHost, mailbox, mailHost });
  const domains = new Domains(
    { db, clock },
    {
      ...{ store, platforms, hasMail, recipientDomains },
      ownsMailbox: (accountId) => accountId === LIVE.accountId,
      check: settings.check ?? createDomainCheck(clock, platforms),
      rules: ALERT_RULES,
      raise: (_tx, _domain, alert) => alerts.push(alert) > 0,
      urls: {
        enable: (_tx, _owner, url) => void turnedOn.push(url),
        move: (_tx, _owner, change) => void moved.push(change),
        isDisabled: (_owner, url) => url.includes("gone"),
      },
    },
  );
  return { db, clock, zone, resolver, store, platforms, domains, alerts, turnedOn, moved };
};

const domainHelpers = ({ db, clock, zone, store, domains, alerts }: ReturnType<typeof composeTestDomains>) => {
  const find = (id: string): DomainRow => {
    const row = store.findById(id);
    if (row === undefined) throw new Error(`no domain ${id}`);
    return row;
  };
  const enrol = async (domain: string, owner = LIVE) =>
    domains.enrol(owner, { domain, label: null, webhookUrl: null, recipients: [], tags: [] });
  const publish = (domain: string, ...texts: string[]): void => {
    zone[`_dmarc.${domain}`] = { TXT: texts };
    zone[`${domain}._report._dmarc.${REPORT_HOST}`] ??= { TXT: ["v=DMARC1;"] };
  };
  return {
    find,
    enrol,
    /** Publishes texts at the domain's name, and the authorization of reports about it. */
    publish,
    /** An enrolled domain that has published its record and is active. */
    async activate(domain = "example.com", tags = "p=reject"): Promise<DomainRow> {
      const { domain: row } = await enrol(domain);
      publish(domain, `v=DMARC1; ${tags}; rua=mailto:${row.token}@${REPORT_HOST}`);
      await domains.verify(LIVE, row.id);
      alerts.length = 0;
      return find(row.id);
    },
    /** A scheduled check. */
    async checkScheduled(id: string): Promise<DomainRow> {
      await domains.checkScheduled(find(id));
      return find(id);
    },
    history: (id: string) => domains.history(LIVE, id, { before: null, limit: 100 }).map(historyView),
    /** Inserts a row with the given differences. */
    insert: (change: Partial<DomainRow> = {}): DomainRow => {
      const nowMs = clock.nowMs();
      const times = { nextCheckAtMs: nowMs, createdAtMs: nowMs, updatedAtMs: nowMs };
      return db.transact((tx) => store.insert(tx, madeDomain({ ...LIVE, status: "pending", ...times, ...change })));
    },
  };
};
