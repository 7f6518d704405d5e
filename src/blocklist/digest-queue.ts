import { type Clock, nextTurn } from "../base/clock.ts";
import { DAY_MS } from "../base/days.ts";
import { nextDigestMs } from "../base/digest-schedule.ts";
import { newId } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Blocklist, Severity } from "../dnsbl/blocklist.ts";
import { type DigestChange, type ListingDigest, type DigestListing, digestMail } from "./digest.ts";
import { listsFor } from "./monitor.ts";
import type { Listings, ListingView } from "./listings.ts";
import type { OverviewView } from "./overview.ts";
import { severityRankOf } from "./severity.ts";
import type { BlocklistStore, Owner, SeverityPlace, TargetRow } from "./store.ts";

/** An account and mode whose digest is due. */
export interface DueDigest extends Owner {
  readonly period: "daily" | "weekly";
  readonly recipients: readonly string[];
  readonly severityMin: Severity | null;
}

export interface DigestQueueDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  readonly listings: Listings;
  readonly overview: (owner: Owner, sinceMs: number) => Promise<Pick<OverviewView, "changes" | "lists_in_trouble">>;
  /** The whole catalogue. */
  readonly lists: readonly Blocklist[];
  readonly due: (nowMs: number, limit: number) => readonly DueDigest[];
  readonly postpone: (tx: Tx, owner: Owner, dueAtMs: number | null) => void;
  readonly clock: Clock;
}

const ACCOUNTS_AT_ONCE = 50;
const ROWS_AT_ONCE = 100;
/** Listed targets that a digest looks at: the worst ones; it shows fewer. */
const TARGETS_MAX = 2_000;
/** As for alert mail: nobody is to read a page of nuisance lists for the one listing that matters. */
const SEVERITY_MIN_DEFAULT = "medium";

const reaches = (severity: Severity | null, min: Severity): boolean =>
  severity === null || severityRankOf(severity) >= severityRankOf(min);

interface Found {
  readonly recipients: readonly string[];
  readonly listings: readonly DigestListing[];
}

/** Queues the digests that are due, as alert mail; each with the next time in one transaction, so that a crash neither loses nor repeats one. */
export const createDigestQueue = (deps: DigestQueueDeps) => {
  const { db, store, listings, overview, lists, due, postpone, clock } = deps;

  const listingOf = (target: TargetRow, min: Severity, view: ListingView): DigestListing => ({
    target: view.address ?? target.value,
    label: target.label,
    name: view.name,
    severity: view.severity,
    meaning: view.meaning,
    since: view.since,
    delistUrl: view.delist_url,
    isAcknowledged: view.acknowledged !== null,
    isAboveThreshold: reaches(view.severity, min),
  });

  const findListed = async (digest: DueDigest): Promise<Found[]> => {
    const found: Found[] = [];
    const { severityMin } = digest;
    for (let before: SeverityPlace | null = null; found.length < TARGETS_MAX;) {
      const rows = store.listWorst(digest, { severityRankMin: 1 }, { before, upTo: null, limit: ROWS_AT_ONCE });
      for (const row of rows) {
        const min = row.alertSeverityMin ?? severityMin ?? SEVERITY_MIN_DEFAULT;
        const views = listings.view(row, listsFor(row.mode, lists)).listings;
        found.push({ recipients: row.recipients, listings: views.map((view) => listingOf(row, min, view)) });
      }
      before = rows.at(-1) ?? null;
      if (rows.length < ROWS_AT_ONCE) break;
      await nextTurn();
    }
    return found;
  };

  /** What each recipient of an account is to read: those of the account everything, those of a target what is theirs. */
  const mailsOf = async (digest: DueDigest, nowMs: number) => {
    const { period, severityMin } = digest;
    const sinceMs = nowMs - (period === "daily" ? 1 : 7) * DAY_MS;
    const found = await findListed(digest);
    const { changes, lists_in_trouble } = await overview(digest, sinceMs);
    const told = changes.recent.flatMap((change) => {
      const target = store.findTarget(change.target_id);
      const min = target?.alertSeverityMin ?? severityMin ?? SEVERITY_MIN_DEFAULT;
      if (!reaches(change.severity, min)) return [];
      const { target: value, label, listing_name: name, severity, at } = change;
      const line: DigestChange = { came: change.change === "listed", target: value, label, name, severity, at };
      return [{ recipients: target?.recipients ?? [], line }];
    });
    const factsFor = (recipient: string): ListingDigest => {
      const isWhole = digest.recipients.includes(recipient);
      const concerns = ({ recipients }: { readonly recipients: readonly string[] }) =>
        isWhole || recipients.includes(recipient);
      return {
        ...{ period, sinceMs, isWhole },
        listings: found.filter(concerns).flatMap((target) => target.listings),
        changes: told.filter(concerns).map(({ line }) => line),
        listsInTrouble: isWhole ? lists_in_trouble : [],
      };
    };
    const everybody = new Set([...digest.recipients, ...[...found, ...told].flatMap(({ recipients }) => recipients)]);
    return [...everybody].flatMap((recipient) => {
      const mail = digestMail(factsFor(recipient));
      return mail === null ? [] : [{ recipient, mail }];
    });
  };

  return async (): Promise<void> => {
    const nowMs = clock.nowMs();
    for (const digest of due(nowMs, ACCOUNTS_AT_ONCE)) {
      const mails = digest.mode === "test" ? [] : await mailsOf(digest, nowMs);
      await db.commit((tx) => {
        for (const { recipient, mail } of mails) {
          store.insertAlert(tx, { id: newId(), recipient, body: JSON.stringify({ digest: mail }), createdAtMs: nowMs });
        }
        postpone(tx, digest, nextDigestMs(digest.period, nowMs));
      });
    }
  };
};
