import { type Clock, isoTime, nextTurn } from "../base/clock.ts";
import { readWindows, type Stretch } from "../base/walk.ts";
import { AppError } from "../base/errors.ts";
import { newId } from "../base/secrets.ts";
import { NO_MAIL_PROBLEM, type RecipientDomains, recipientsProblem } from "../mail/recipients.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Blocklist, Severity } from "../dnsbl/blocklist.ts";
import { lastSeenOf, type Listings } from "./listings.ts";
import { listsFor } from "./monitor.ts";
import type { Muting } from "./muting.ts";
import type { RangeStore } from "./range-store.ts";
import { nextPassMs } from "./schedule.ts";
import { severityOfRank } from "./severity.ts";
import type { BlocklistStore, Owner, SeverityPlace, TargetChange, TargetFilters, TargetRow } from "./store.ts";
import { isRangeForm } from "./address-range.ts";
import type { WebhookUrls } from "../webhooks/webhook-urls.ts";
import { parseTargetOrRange, type ParsedTarget } from "./parse-target.ts";

export interface TargetsDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  readonly ranges: RangeStore;
  readonly listings: Listings;
  readonly muting: Muting;
  /** The whole catalogue. */
  readonly lists: readonly Blocklist[];
  /** The webhook URLs of targets and domains. */
  readonly urls: Pick<WebhookUrls, "enable" | "isDisabled" | "move">;
  readonly clock: Clock;
  /** Whether alert mail can be sent at all. */
  readonly hasMail: boolean;
  readonly recipientDomains: RecipientDomains;
}

/** What is to be watched, and how; `target` as the user wrote it. */
export interface NewTarget {
  readonly target: string;
  readonly label: string | null;
  readonly monitoringEnabled: boolean;
  readonly webhookUrl: string | null;
  readonly recipients: readonly string[];
  readonly alertSeverityMin: Severity | null;
}

/** What became of an order: `invalid` with a sentence. */
export type AddOutcome =
  | { readonly status: "created" | "exists"; readonly target: TargetRow }
  | { readonly status: "invalid"; readonly problem: string };

/** Far more than anybody sends from; it bounds what one account can make the lists be asked. */
const TARGETS_PER_ACCOUNT_MAX = 100_000;
/** Orders that one transaction takes. */
const ORDERS_AT_ONCE = 100;
/** Between the first checks of two addresses of a range. */
const MEMBER_DELAY_MS = 1_000;
/** Addresses removed in one transaction, each with its history. */
const REMOVED_AT_ONCE = 20;

const fullProblem = `An account can watch ${TARGETS_PER_ACCOUNT_MAX.toLocaleString("en")} domains and addresses.`;

const issue = (
  path: string,
  message: string,
  code: "Invalid request body" | "Invalid query" = "Invalid request body",
) => new AppError(code, { issues: [{ path, message }] });

/** The targets of callers: add, look at, change, remove. A caller sees those of its account and mode. */
export const createTargets = (deps: TargetsDeps) => {
  const { db, store, ranges, listings, muting, lists, clock, hasMail, recipientDomains } = deps;
  const { urls } = deps;
  const find = (caller: Owner, id: string): TargetRow => {
    const target = store.findTarget(id);
    if (target === undefined || target.accountId !== caller.accountId || target.mode !== caller.mode) {
      throw new AppError("not_found", { message: "There is no such target." });
    }
    return target;
  };

  const refuseRecipients = (recipients: readonly string[]): void => {
    const problem =
      recipients.length === 0 || hasMail ? recipientsProblem(recipients, recipientDomains) : NO_MAIL_PROBLEM;
    if (problem !== null) throw issue("recipients", problem);
  };

  /** An address of a range has what the range has. */
  const refuseMember = ({ rangeId }: TargetRow): void => {
    const range = rangeId === "" ? undefined : store.findTarget(rangeId);
    if (range === undefined) return;
    throw new AppError("conflict", {
      message: `The address belongs to the range ${range.value}: change that one (${range.id}).`,
    });
  };

  const rowOf = ({ accountId, mode }: Owner, { kind, value, addresses }: ParsedTarget, order: NewTarget): TargetRow => {
    const nowMs = clock.nowMs();
    const { label, monitoringEnabled, webhookUrl, recipients, alertSeverityMin } = order;
    return {
      id: newId(),
      ...{ accountId, mode, kind, value, label, monitoringEnabled, webhookUrl, recipients, alertSeverityMin },
      ...{ rangeId: "", members: addresses?.length ?? null },
      ...{ status: "pending", listedOn: [], mutedLists: [], severityRank: 0, unknownChecks: 0 },
      ...{ lastCheckedAtMs: null, nextCheckAtMs: nextPassMs(nowMs), createdAtMs: nowMs },
    };
  };

  /** In a transaction: nothing is written for what exists or does not fit. `count` is how many the account has. */
  const addOne = (tx: Tx, caller: Owner, order: NewTarget, count: number): AddOutcome => {
    const parsed = parseTargetOrRange(order.target, caller.mode);
    if (!parsed.ok) return { status: "invalid", problem: parsed.error };
    const { kind, value, addresses } = parsed.value;
    const same = store.findSame(caller, kind, value);
    if (same !== undefined) return { status: "exists", target: same };
    if (count + (addresses?.length ?? 1) > TARGETS_PER_ACCOUNT_MAX) return { status: "invalid", problem: fullProblem };
    const row = rowOf(caller, parsed.value, order);
    store.insertTarget(tx, row);
    if (addresses !== null) {
      const members = addresses.map((address, at) => ({ id: newId(), value: address, delayMs: at * MEMBER_DELAY_MS }));
      ranges.insertMembers(tx, row.id, members);
    }
    if (row.webhookUrl !== null) urls.enable(tx, row, row.webhookUrl);
    return { status: "created", target: row };
  };

  /** When a paused target is checked if it is resumed now. */
  const resumedMs = ({ nextCheckAtMs }: TargetRow): number => Math.max(nextCheckAtMs, nextPassMs(clock.nowMs()));

  /** What a change of a range means for its addresses. */
  const changeMembers = (tx: Tx, id: string, wanted: TargetChange, isResumed: boolean): void => {
    const { mutedLists: _, ...rest } = wanted;
    if (Object.keys(rest).length > 0) ranges.updateMembers(tx, id, rest);
    if (isResumed) ranges.postpone(tx, id, nextPassMs(clock.nowMs()));
  };

  return {
    find,

    /** Adds a target, or finds the same one: `isNew` tells which. */
    async add(caller: Owner, order: NewTarget): Promise<{ readonly target: TargetRow; readonly isNew: boolean }> {
      refuseRecipients(order.recipients);
      const added = await db.commit((tx) => addOne(tx, caller, order, store.countTargets(caller)));
      if (added.status !== "invalid") return { target: added.target, isNew: added.status === "created" };
      if (added.problem === fullProblem) throw new AppError("conflict", { message: fullProblem });
      throw issue("target", added.problem);
    },

    /** Adds many, some in one transaction each: every order has its outcome, in their order. `orders` share their recipients. */
    async addMany(caller: Owner, orders: readonly NewTarget[]): Promise<AddOutcome[]> {
      for (const recipients of new Set(orders.map((order) => order.recipients))) refuseRecipients(recipients);
      const outcomes: AddOutcome[] = [];
      for (const some of portionsOf(orders)) {
        const added = await db.commit((tx) => {
          let count = store.countTargets(caller);
          return some.map((order) => {
            const outcome = addOne(tx, caller, order, count);
            if (outcome.status === "created") count += 1 + (outcome.target.members ?? 0);
            return outcome;
          });
        });
        outcomes.push(...added);
        await nextTurn();
      }
      return outcomes;
    },

    /** Changes what is given. Whatever is paused keeps its history; resumed, it is checked at its time or the next pass. */
    async change(caller: Owner, id: string, wanted: TargetChange): Promise<TargetRow> {
      const known = find(caller, id);
      refuseMember(known);
      const muted = wanted.mutedLists === undefined ? null : muting.problemOf(known, wanted.mutedLists);
      if (muted !== null) throw issue(`muted_lists.${muted.at}`, muted.message);
      if (wanted.recipients !== undefined) refuseRecipients(wanted.recipients);
      const changed = await db.commit((tx) => {
        const before = store.findTarget(id);
        if (before === undefined) return undefined;
        const { mutedLists, ...rest } = wanted;
        if (mutedLists !== undefined) muting.mute(tx, before, mutedLists);
        const isResumed = rest.monitoringEnabled === true && !before.monitoringEnabled;
        const nextCheckAtMs = isResumed ? resumedMs(before) : before.nextCheckAtMs;
        store.updateTarget(tx, id, { ...rest, nextCheckAtMs });
        if (before.members !== null) changeMembers(tx, id, rest, isResumed);
        const { webhookUrl } = rest;
        if (webhookUrl !== undefined && webhookUrl !== null) urls.enable(tx, before, webhookUrl);
        const subject = `target:${id}`;
        if (webhookUrl !== undefined) urls.move(tx, before, { subject, from: before.webhookUrl, to: webhookUrl });
        return store.findTarget(id);
      });
      if (changed === undefined) throw new AppError("not_found", { message: "There is no such target." });
      return changed;
    },

    /** Removes a target and its history; a range with all its addresses, some at a time. A check that runs is not recorded. */
    async remove(caller: Owner, id: string): Promise<void> {
      const target = find(caller, id);
      refuseMember(target);
      let removed = target.members === null ? 0 : REMOVED_AT_ONCE;
      while (removed === REMOVED_AT_ONCE) {
        removed = await db.commit((tx) => {
          const members = ranges.members(id, "", REMOVED_AT_ONCE);
          for (const member of members) store.removeTarget(tx, member.id);
          return members.length;
        });
        await nextTurn();
      }
      await db.commit((tx) => store.removeTarget(tx, id));
    },

    /** The targets of the caller, newest first; where `rangeId` is set, the addresses of that range. */
    list(
      caller: Owner,
      filters: TargetFilters,
    ): (before: string | null, looks: number, wanted: number) => Stretch<TargetRow, string> {
      const wanted = readFilters(caller, filters);
      const { rangeId = "" } = filters;
      return readWindows({
        idBehind: (before, places) => store.idBehind(caller, rangeId, { before, places }),
        list: (page) => store.listTargets(caller, wanted, page),
      });
    },

    /** The targets of the caller, the worst first, among those alike the newest. A cursor is `rank.id`. */
    listWorst(caller: Owner, filters: TargetFilters) {
      const wanted = readFilters(caller, filters);
      return (behind: string | null, looks: number, limit: number): Stretch<TargetRow, string> => {
        const before = behind === null ? null : placeOfCursor(behind);
        const upTo = store.placeBehind(caller, before, looks - 1);
        const rows = store.listWorst(caller, wanted, { before, upTo, limit });
        const last = rows.at(-1);
        const end = upTo === null ? null : severityCursor(upTo);
        return { rows, end: rows.length === limit && last !== undefined ? severityCursor(last) : end };
      };
    },

    /** A target as the interface shows it; a paused one with the time at which it would be checked when resumed now. */
    view(target: TargetRow) {
      const { webhookUrl } = target;
      const listed = listings.view(target, listsFor(target.mode, lists));
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
        ...{ listings: listed.listings, listings_count: listed.count, seen_at: lastSeenOf(listed.listings) },
        muted_lists: target.mutedLists,
        last_checked_at: target.lastCheckedAtMs === null ? null : isoTime(target.lastCheckedAtMs),
        next_check_at: isoTime(target.monitoringEnabled ? target.nextCheckAtMs : resumedMs(target)),
        webhook_configured: webhookUrl !== null && !urls.isDisabled(target, webhookUrl),
        recipients: target.recipients,
        alert_severity_min: target.alertSeverityMin,
        created_at: isoTime(target.createdAtMs),
      };
    },
  };
};

export type Targets = ReturnType<typeof createTargets>;

/** Orders in portions for one transaction each: many of single addresses, one of a range. */
const portionsOf = (orders: readonly NewTarget[]): NewTarget[][] => {
  const portions: NewTarget[][] = [];
  let hasRange = true;
  for (const order of orders) {
    const isRange = isRangeForm(order.target);
    const last = portions.at(-1);
    if (last === undefined || isRange || hasRange || last.length === ORDERS_AT_ONCE) portions.push([order]);
    else last.push(order);
    hasRange = isRange;
  }
  return portions;
};

/** The filter by name reads any spelling. */
const readFilters = (caller: Owner, filters: TargetFilters): TargetFilters => {
  if (filters.value === undefined) return filters;
  const parsed = parseTargetOrRange(filters.value, caller.mode);
  if (!parsed.ok) throw issue("target", parsed.error, "Invalid query");
  return { ...filters, kind: filters.kind, value: parsed.value.value };
};

/** Behind which target a page in the order by severity begins. */
export const severityCursor = ({ severityRank, id }: SeverityPlace): string => `${severityRank}.${id}`;

const placeOfCursor = (cursor: string): SeverityPlace => ({ severityRank: Number(cursor[0]), id: cursor.slice(2) });
