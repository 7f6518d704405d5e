import { nextTurn } from "../foundation/base/clock.ts";
import { DAY_MS, nextDigestMs } from "../foundation/base/days.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Severity } from "../foundation/base/severity.ts";
import { type DigestChange, type DigestListing, digestOf, isWorthMailing, type ListingDigest } from "./digest.ts";
import type { Listings, ListingView } from "./listings.ts";
import type { ListingMailQueue } from "./listing-store.ts";
import type { Overview } from "./overview.ts";
import { isSevereEnough, MAIL_SEVERITY_MIN } from "./lists/blocklist.ts";
import type { BlocklistStore, SeverityPosition, TargetRow } from "./store.ts";
import type { ListsByMode } from "./target-lookup.ts";
import type { NotificationsStore } from "../notifications/settings/store.ts";

/** An account and mode whose digest is due. */
export type DueDigest = ReturnType<NotificationsStore["dueDigests"]>[number];

export interface DigestQueueDeps {
  readonly store: BlocklistStore;
  readonly listings: Listings;
  readonly overview: Pick<Overview, "changesSince" | "listsInTrouble">;
  readonly mailQueue: ListingMailQueue;
  /** The whole catalogue. */
  readonly catalogue: ListsByMode;
  readonly defaults: Pick<NotificationsStore, "dueDigests" | "postponeDigest">;
}

const ACCOUNTS_AT_ONCE = 50;
const ROWS_AT_ONCE = 100;
/** Listed targets that a digest reads, most severe first; it shows fewer. */
const TARGETS_MAX = 2_000;

/** Something of one target, and the recipients of that target. */
interface Addressed<T> {
  readonly recipients: readonly string[];
  readonly item: T;
}

/** Queues the digests that are due. Each is stored in one transaction with its next time, so a crash neither loses nor repeats one. */
export class ListingDigests {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: DigestQueueDeps,
  ) {}

  async queueDue() {
    const { mailQueue, defaults } = this.deps;
    const nowMs = this.runtime.clock.nowMs();
    for (const account of defaults.dueDigests(nowMs, ACCOUNTS_AT_ONCE)) {
      const digests = account.mode === "test" ? [] : await this.#digestsOf(account, nowMs);
      await this.runtime.db.commit((tx) => {
        for (const { recipient, digest } of digests)
          mailQueue.insert(tx, { accountId: account.accountId, recipient, entry: { digest }, createdAtMs: nowMs });
        defaults.postponeDigest(tx, account, nextDigestMs(account.period, nowMs));
      });
    }
  }

  /** One digest per recipient: those of the account get everything, those of a target what concerns it. */
  async #digestsOf(account: DueDigest, nowMs: number): Promise<{ recipient: string; digest: ListingDigest }[]> {
    const { period } = account;
    const sinceMs = nowMs - (period === "daily" ? 1 : 7) * DAY_MS;
    const listings = await this.#listingsOf(account);
    const changes = await this.#changesOf(account, sinceMs);
    const recipients = [...account.recipients, ...[...listings, ...changes].flatMap((one) => one.recipients)];
    const digests = [...new Set(recipients)].map((recipient) => {
      const isWhole = account.recipients.includes(recipient);
      const own = <T>(all: readonly Addressed<T>[]) =>
        all.filter((one) => isWhole || one.recipients.includes(recipient)).map(({ item }) => item);
      const listsInTrouble = isWhole ? this.deps.overview.listsInTrouble(account) : [];
      const facts = { period, sinceMs, isWhole, listings: own(listings), changes: own(changes), listsInTrouble };
      return { recipient, digest: digestOf(facts) };
    });
    return digests.filter(({ digest }) => isWorthMailing(digest));
  }

  async #listingsOf(account: DueDigest): Promise<readonly Addressed<DigestListing>[]> {
    const { store, listings, catalogue } = this.deps;
    const found: Addressed<DigestListing>[] = [];
    let targets = 0;
    for (let before: SeverityPosition | null = null; targets < TARGETS_MAX;) {
      const rows = store.listWorst(account, { severityRankMin: 1 }, { before, upTo: null, limit: ROWS_AT_ONCE });
      for (const row of rows) {
        const min = thresholdOf(account, row);
        const views = listings.view(row, catalogue[row.mode]).listings;
        found.push(...views.map((view) => ({ recipients: row.recipients, item: listingOf(row, min, view) })));
      }
      targets += rows.length;
      before = rows.at(-1) ?? null;
      if (rows.length < ROWS_AT_ONCE) break;
      await nextTurn();
    }
    return found;
  }

  async #changesOf(account: DueDigest, sinceMs: number): Promise<readonly Addressed<DigestChange>[]> {
    const { recent } = await this.deps.overview.changesSince(account, sinceMs);
    return recent.flatMap(({ change, target_id, target: value, label, listing_name: name, severity, at }) => {
      const target = this.deps.store.findTarget(target_id);
      if (!isSevereEnough(severity, thresholdOf(account, target))) return [];
      const item = { came: change === "listed", targetId: target_id, target: value, label, name, severity, at };
      return [{ recipients: target?.recipients ?? [], item }];
    });
  }
}

const thresholdOf = ({ severityMin }: DueDigest, target: TargetRow | undefined) =>
  target?.alertSeverityMin ?? severityMin ?? MAIL_SEVERITY_MIN;

const listingOf = (target: TargetRow, min: Severity, view: ListingView): DigestListing => ({
  targetId: target.rangeId === "" ? target.id : target.rangeId,
  target: view.address ?? target.value,
  label: target.label,
  name: view.name,
  severity: view.severity,
  meaning: view.meaning,
  since: view.since,
  delistUrl: view.delist_url,
  isAcknowledged: view.acknowledged !== null,
  isAboveThreshold: isSevereEnough(view.severity, min),
});
