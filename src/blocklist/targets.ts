import { isoTime, nextTurn } from "../foundation/base/clock.ts";
import { readById, type ReadRows } from "../foundation/base/walk.ts";
import { AppError } from "../foundation/base/errors.ts";
import { inSteps } from "../foundation/base/in-steps.ts";
import { newId, type Owner } from "../foundation/base/secrets.ts";
import { NO_MAIL_PROBLEM, type RecipientDomains, recipientsProblem } from "../foundation/mail/recipients.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { lastSeenOf, type Listings, type ListingView } from "./listings.ts";
import type { Muting } from "./muting.ts";
import type { RangeStore } from "./range-store.ts";
import { nextPassMs } from "./check-result.ts";
import {
  type BlocklistStore,
  type TargetChange,
  type TargetFilters,
  type TargetRow,
  TargetRemovalStore,
} from "./store.ts";
import { isRangeForm, parseTargetOrRange, type ParsedTarget } from "./parse-target.ts";
import type { WebhookUrls } from "../notifications/webhooks/url-store.ts";
import { severityOfRank } from "./lists/blocklist.ts";
import { positionOfCursor, severityCursor } from "./schemas.ts";
import type { ListsByMode } from "./target-lookup.ts";

/** A target to add; `target` as the user wrote it. */
export type NewTarget = Pick<
  TargetRow,
  "label" | "monitoringEnabled" | "webhookUrl" | "recipients" | "alertSeverityMin"
> & { readonly target: string };

/** The result of adding a target. `problem` is a sentence. */
export type AddOutcome =
  | { readonly status: "created" | "exists"; readonly target: TargetRow }
  | { readonly status: "invalid"; readonly problem: string };

/** Bounds the queries that one account can cause. */
const TARGETS_PER_ACCOUNT_MAX = 100_000;
/** Targets that one transaction adds. */
const TARGETS_AT_ONCE = 100;
/** Between the first checks of two addresses of a range. */
const MEMBER_DELAY_MS = 1_000;
/** Rows that one transaction removes: it holds the event loop for a few milliseconds. */
const REMOVED_AT_ONCE = 500;

const FULL = `An account can monitor at most ${TARGETS_PER_ACCOUNT_MAX.toLocaleString("en")} domains and addresses.`;

const bodyIssue = (path: string, message: string) =>
  new AppError("Invalid request body", { issues: [{ path, message }] });
const noTarget = () => new AppError("not_found", { message: "There is no such target." });

/** The targets of callers, who see those of their account and mode. */
export class Targets {
  readonly #removal: TargetRemovalStore;

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      store: BlocklistStore;
      ranges: RangeStore;
      listings: Listings;
      muting: Muting;
      /** The whole catalogue. */
      catalogue: ListsByMode;
      /** The webhook URLs of targets and domains. */
      urls: WebhookUrls;
      /** Whether the service can send mail. */
      hasMail: boolean;
      recipientDomains: RecipientDomains;
    },
  ) {
    this.#removal = new TargetRemovalStore(runtime.db);
  }

  /** Throws `not_found` for a target that does not exist or is not the caller's. */
  find(caller: Owner, id: string): TargetRow {
    const target = this.deps.store.findTarget(id);
    if (target === undefined || target.accountId !== caller.accountId || target.mode !== caller.mode) throw noTarget();
    return target;
  }

  /** Adds a target. `isNew` is false when the same target exists; it is returned unchanged. */
  async add(caller: Owner, target: NewTarget): Promise<{ readonly target: TargetRow; readonly isNew: boolean }> {
    const { store } = this.deps;
    this.#refuseRecipients(target.recipients);
    const added = await this.runtime.db.commit((tx) => this.#addOne(tx, caller, target, store.countTargets(caller)));
    if (added.status !== "invalid") return { target: added.target, isNew: added.status === "created" };
    throw added.problem === FULL ? new AppError("conflict", { message: FULL }) : bodyIssue("target", added.problem);
  }

  /** Adds many targets, some per transaction. One outcome per target, in their order. */
  async addMany(caller: Owner, targets: readonly NewTarget[]): Promise<AddOutcome[]> {
    for (const recipients of new Set(targets.map((target) => target.recipients))) this.#refuseRecipients(recipients);
    const outcomes: AddOutcome[] = [];
    for (const portion of portionsOf(targets)) {
      const added = await this.runtime.db.commit((tx) => {
        let count = this.deps.store.countTargets(caller);
        return portion.map((target) => {
          const outcome = this.#addOne(tx, caller, target, count);
          if (outcome.status === "created") count += 1 + (outcome.target.members ?? 0);
          return outcome;
        });
      });
      outcomes.push(...added);
      await nextTurn();
    }
    return outcomes;
  }

  /** Changes the given fields. A paused target keeps its history; a resumed one is checked at its time or in the next run. */
  async change(caller: Owner, id: string, change: TargetChange): Promise<TargetRow> {
    const { store, muting, urls } = this.deps;
    const known = this.find(caller, id);
    this.#refuseMember(known);
    const muted = change.mutedLists === undefined ? null : muting.problemOf(known, change.mutedLists);
    if (muted !== null) throw bodyIssue(`muted_lists.${muted.at}`, muted.message);
    if (change.recipients !== undefined) this.#refuseRecipients(change.recipients);
    const changed = await this.runtime.db.commit((tx) => {
      const before = store.findTarget(id);
      if (before === undefined) return undefined;
      const { mutedLists, ...rest } = change;
      if (mutedLists !== undefined) muting.mute(tx, before, mutedLists);
      const isResumed = rest.monitoringEnabled === true && !before.monitoringEnabled;
      const nextCheckAtMs = isResumed ? this.#resumedMs(before) : before.nextCheckAtMs;
      store.updateTarget(tx, id, { ...rest, nextCheckAtMs });
      if (before.members !== null) this.#changeMembers(tx, id, rest, isResumed);
      const { webhookUrl } = rest;
      if (webhookUrl !== undefined && webhookUrl !== null) urls.enable(tx, before, webhookUrl);
      const subject = `target:${id}`;
      if (webhookUrl !== undefined) urls.move(tx, before, { subject, from: before.webhookUrl, to: webhookUrl });
      return store.findTarget(id);
    });
    if (changed === undefined) throw noTarget();
    return changed;
  }

  /**
   * Removes a target, a range with all its addresses, and then their history in short transactions. A running check is not
   * stored.
   */
  async remove(caller: Owner, id: string) {
    this.#refuseMember(this.find(caller, id));
    for (const removed of await this.runtime.db.commit((tx) => this.#removal.removeTarget(tx, id)))
      await this.#removeHistory(removed);
  }

  /** Removes what a crash left of removed targets. */
  async finishRemovals(isStopping: () => boolean) {
    for (let id = this.#removal.unfinished(); id !== undefined; id = this.#removal.unfinished()) {
      await this.#removeHistory(id, isStopping);
      if (isStopping()) return;
    }
  }

  /** The targets of the caller, newest first; with `rangeId`, the addresses of that range. */
  list(caller: Owner, filters: TargetFilters) {
    const { store } = this.deps;
    const wanted = readFilters(caller, filters);
    const { rangeId = "" } = filters;
    return readById<TargetRow>(
      (page) => store.listTargets(caller, wanted, page),
      (before, places) => store.idBehind(caller, rangeId, { before, places }),
    );
  }

  /** The targets of the caller, most severe first, then newest first. A cursor is `rank.id`. */
  listWorst(caller: Owner, filters: TargetFilters): ReadRows<TargetRow, string | null> {
    const { store } = this.deps;
    const wanted = readFilters(caller, filters);
    return (behind, looks, limit) => {
      const before = behind === null ? null : positionOfCursor(behind);
      const upTo = store.positionBehind(caller, before, looks - 1);
      const rows = store.listWorst(caller, wanted, { before, upTo, limit });
      const last = rows.at(-1);
      const end = upTo === null ? null : severityCursor(upTo);
      return { rows, next: rows.length === limit && last !== undefined ? severityCursor(last) : end };
    };
  }

  /** A target as the API returns it. `next_check_at` of a paused one is when it would be checked if resumed now. */
  view(target: TargetRow) {
    const { listings, catalogue, urls } = this.deps;
    const { webhookUrl } = target;
    const listed = listings.view(target, catalogue[target.mode]);
    return {
      id: target.id,
      kind: target.kind,
      value: target.value,
      members: target.members,
      range_id: target.rangeId === "" ? null : target.rangeId,
      label: target.label,
      status: target.status,
      severity: severityOfRank(target.severityRank),
      monitoring_enabled: target.monitoringEnabled,
      listed_on: target.listedOn,
      listings: listed.listings,
      listings_count: listed.count,
      seen_at: lastSeenOf(listed.listings),
      muted_lists: target.mutedLists,
      last_checked_at: target.lastCheckedAtMs === null ? null : isoTime(target.lastCheckedAtMs),
      next_check_at: isoTime(target.monitoringEnabled ? target.nextCheckAtMs : this.#resumedMs(target)),
      webhook_configured: webhookUrl !== null && !urls.isDisabled(target, webhookUrl),
      recipients: target.recipients,
      alert_severity_min: target.alertSeverityMin,
      created_at: isoTime(target.createdAtMs),
    };
  }

  /** The listings of targets by the id of the target; targets without one are missing. */
  listingsOf(targets: readonly TargetRow[], mode: Owner["mode"]): ReadonlyMap<string, readonly ListingView[]> {
    return this.deps.listings.viewMany(targets, this.deps.catalogue[mode]);
  }

  async #removeHistory(id: string, isStopping?: () => boolean) {
    const { db } = this.runtime;
    const limits = isStopping === undefined ? undefined : { isStopping };
    await inSteps(() => db.commit((tx) => this.#removal.removeSome(tx, id, REMOVED_AT_ONCE)), limits);
  }

  #refuseRecipients(recipients: readonly string[]) {
    const { hasMail, recipientDomains } = this.deps;
    const problem =
      recipients.length === 0 || hasMail ? recipientsProblem(recipients, recipientDomains) : NO_MAIL_PROBLEM;
    if (problem !== null) throw bodyIssue("recipients", problem);
  }

  /** Addresses of a range have the settings of the range. */
  #refuseMember({ rangeId }: TargetRow) {
    const range = rangeId === "" ? undefined : this.deps.store.findTarget(rangeId);
    if (range === undefined) return;
    throw new AppError("conflict", {
      message: `This address belongs to the range ${range.value}. Change or remove the range instead (${range.id}).`,
    });
  }

  /** Nothing is written for a target that exists or is invalid. `count`: targets of the account. */
  #addOne(tx: Tx, caller: Owner, wanted: NewTarget, count: number): AddOutcome {
    const { store, ranges, urls } = this.deps;
    const parsed = parseTargetOrRange(wanted.target, caller.mode);
    if (!parsed.ok) return { status: "invalid", problem: parsed.error };
    const { kind, value, addresses } = parsed.value;
    const same = store.findSame(caller, kind, value);
    if (same !== undefined) return { status: "exists", target: same };
    if (count + (addresses?.length ?? 1) > TARGETS_PER_ACCOUNT_MAX) return { status: "invalid", problem: FULL };
    const row = newRow(caller, parsed.value, wanted, this.runtime.clock.nowMs());
    store.insertTarget(tx, row);
    if (addresses !== null) {
      const members = addresses.map((address, at) => ({ id: newId(), value: address, delayMs: at * MEMBER_DELAY_MS }));
      ranges.insertMembers(tx, row.id, members);
    }
    if (row.webhookUrl !== null) urls.enable(tx, row, row.webhookUrl);
    return { status: "created", target: row };
  }

  /** When a paused target is checked if it is resumed now. */
  #resumedMs({ nextCheckAtMs }: TargetRow) {
    return Math.max(nextCheckAtMs, nextPassMs(this.runtime.clock.nowMs()));
  }

  /** Applies a change of a range to its addresses. */
  #changeMembers(tx: Tx, id: string, change: TargetChange, isResumed: boolean) {
    const { ranges } = this.deps;
    if (Object.keys(change).length > 0) ranges.updateMembers(tx, id, change);
    if (isResumed) ranges.postpone(tx, id, nextPassMs(this.runtime.clock.nowMs()));
  }
}

const newRow = (
  { accountId, mode }: Owner,
  { kind, value, addresses }: ParsedTarget,
  { label, monitoringEnabled, webhookUrl, recipients, alertSeverityMin }: NewTarget,
  nowMs: number,
): TargetRow => ({
  id: newId(),
  accountId,
  mode,
  kind,
  value,
  label,
  monitoringEnabled,
  webhookUrl,
  recipients,
  alertSeverityMin,
  rangeId: "",
  members: addresses?.length ?? null,
  status: "pending",
  listedOn: [],
  mutedLists: [],
  severityRank: 0,
  unknownChecks: 0,
  lastCheckedAtMs: null,
  nextCheckAtMs: nextPassMs(nowMs),
  createdAtMs: nowMs,
});

/** New targets in portions for one transaction each: many targets, or one range. */
const portionsOf = (wanted: readonly NewTarget[]): NewTarget[][] => {
  const portions: NewTarget[][] = [];
  let hasRange = true;
  for (const target of wanted) {
    const isRange = isRangeForm(target.target);
    const last = portions.at(-1);
    if (last === undefined || isRange || hasRange || last.length === TARGETS_AT_ONCE) portions.push([target]);
    else last.push(target);
    hasRange = isRange;
  }
  return portions;
};

/** Normalizes the filter by name. */
const readFilters = (caller: Owner, filters: TargetFilters): TargetFilters => {
  if (filters.value === undefined) return filters;
  const parsed = parseTargetOrRange(filters.value, caller.mode);
  if (!parsed.ok) throw new AppError("Invalid query", { issues: [{ path: "target", message: parsed.error }] });
  return { ...filters, kind: filters.kind, value: parsed.value.value };
};

/** What is done with many targets at once. Each throws `not_found` for a target that is not the caller's, before it changes any. */
export class TargetActions {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      blocklists: Pick<BlocklistStore, "updateTarget">;
      ranges: RangeStore;
      targets: Pick<Targets, "find" | "change" | "remove">;
    },
  ) {}

  /** Makes targets due, so that the next run of scheduled checks takes them, within a minute. Paused ones stay as they are. */
  async checkSoon(owner: Owner, ids: readonly string[]) {
    const { blocklists, ranges, targets } = this.deps;
    const { db, clock } = this.runtime;
    const found = ids.map((id) => targets.find(owner, id));
    const due = { nextCheckAtMs: clock.nowMs() };
    await db.commit((tx) => {
      for (const { id, members } of found) {
        blocklists.updateTarget(tx, id, due);
        if (members !== null) ranges.updateMembers(tx, id, due);
      }
    });
  }

  async setMonitoring(owner: Owner, ids: readonly string[], monitoringEnabled: boolean) {
    for (const id of ids) this.deps.targets.find(owner, id);
    for (const id of ids) await this.deps.targets.change(owner, id, { monitoringEnabled });
  }

  /** Removes targets with their history. */
  async remove(owner: Owner, ids: readonly string[]) {
    for (const id of ids) this.deps.targets.find(owner, id);
    for (const id of ids) {
      await this.deps.targets.remove(owner, id);
      await nextTurn();
    }
  }
}
