import { type Clock, isoTime } from "../base/clock.ts";
import type { IdSource } from "../base/walk.ts";
import { AppError } from "../base/errors.ts";
import { nearestName } from "../base/nearest.ts";
import { newId } from "../base/secrets.ts";
import { type RecipientDomains, recipientsProblem } from "../mail/recipients.ts";
import type { Db, Tx } from "../db/open.ts";
import { type Blocklist, isEnabled } from "../dnsbl/blocklist.ts";
import type { Caller } from "../http/guard.ts";
import { checkBodySchema } from "./check-body.ts";
import { eventOf } from "./events.ts";
import { listsFor } from "./monitor.ts";
import { nextPassMs } from "./schedule.ts";
import type { BlocklistStore, TargetChange, TargetFilters, TargetRow } from "./store.ts";
import { parseTarget } from "./target-form.ts";

export interface TargetsDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  /** The whole catalogue: any of its lists can be muted. */
  readonly lists: readonly Blocklist[];
  /** Turns a URL on again that its receiver had turned off. */
  readonly turnOnUrl: (tx: Tx, owner: Pick<Caller, "accountId" | "mode">, url: string) => void;
  /** Whether the receiver of a URL had it turned off. */
  readonly isUrlOff: (owner: Pick<Caller, "accountId" | "mode">, url: string) => boolean;
  readonly clock: Clock;
  /** Whether alert mail can be sent at all. */
  readonly hasMail: boolean;
  readonly recipientDomains: RecipientDomains;
}

export interface TargetOrder {
  readonly target: string;
  readonly label: string | null;
  readonly monitoringEnabled: boolean;
  readonly webhookUrl: string | null;
  readonly recipients: readonly string[];
}

/** Far more than anybody sends from; it bounds what one account can make the lists be asked. */
const TARGETS_PER_ACCOUNT_MAX = 100_000;

const issue = (
  path: string,
  message: string,
  code: "Invalid request body" | "Invalid query" = "Invalid request body",
) => new AppError(code, { issues: [{ path, message }] });

/** The targets of callers: add, look at, change, remove. A caller sees those of its account and mode. */
export const createTargets = (deps: TargetsDeps) => {
  const { db, store, lists, turnOnUrl, isUrlOff, clock, hasMail, recipientDomains } = deps;
  const find = (caller: Caller, id: string): TargetRow => {
    const target = store.findTarget(id);
    if (target === undefined || target.accountId !== caller.accountId || target.mode !== caller.mode) {
      throw new AppError("not_found", { message: "There is no such target." });
    }
    return target;
  };

  const refuseRecipients = (recipients: readonly string[]): void => {
    const problem =
      recipients.length === 0 || hasMail
        ? recipientsProblem(recipients, recipientDomains)
        : "This service sends no mail: POSTWARDEN_NOTIFY_SMTP_URL and POSTWARDEN_NOTIFY_FROM are not set";
    if (problem !== null) throw issue("recipients", problem);
  };

  const rowOf = ({ accountId, mode }: Caller, order: TargetOrder): TargetRow => {
    const parsed = parseTarget(order.target, mode);
    if (!parsed.ok) throw issue("target", parsed.error);
    const nowMs = clock.nowMs();
    const { label, monitoringEnabled, webhookUrl, recipients } = order;
    refuseRecipients(recipients);
    return {
      id: newId(),
      accountId,
      mode,
      ...parsed.value,
      label,
      status: "pending",
      listedOn: [],
      mutedLists: [],
      monitoringEnabled,
      webhookUrl,
      recipients,
      lastCheckedAtMs: null,
      nextCheckAtMs: nextPassMs(nowMs),
      createdAtMs: nowMs,
    };
  };

  /** When a paused target is checked if it is resumed now. */
  const resumedMs = ({ nextCheckAtMs }: TargetRow): number => Math.max(nextCheckAtMs, nextPassMs(clock.nowMs()));

  /**
   * Whether a list that goes on being asked said in the last check that it has no entry. A check keeps no name of those
   * that said so: one that is being muted, and did not refuse or fail, may have been among them.
   */
  const isDenied = (before: TargetRow, mutedLists: readonly string[]): boolean => {
    const [last] = store.listChecks(before.id, { before: null, limit: 1 });
    if (last === undefined) return false;
    const { counts, results } = checkBodySchema.parse(JSON.parse(last.body));
    const silenced = listsFor(before.mode, lists.filter(isEnabled)).filter(
      ({ id, kinds }) =>
        kinds.includes(before.kind) &&
        mutedLists.includes(id) &&
        !before.mutedLists.includes(id) &&
        results.every(({ list }) => list !== id),
    );
    return counts.not_listed > silenced.length;
  };

  /** Listings that are being muted, by themselves or with their list, go at once, each with its event. */
  const mute = (tx: Tx, before: TargetRow, mutedLists: readonly string[]): TargetChange => {
    const known = listsFor(before.mode, lists);
    const isMuted = (listing: string) =>
      mutedLists.includes(listing) ||
      known.some(({ id, codes }) => mutedLists.includes(id) && codes.some((code) => code.id === listing));
    const gone = before.listedOn.filter(isMuted);
    if (gone.length === 0) return { mutedLists };
    const listedOn = before.listedOn.filter((listing) => !gone.includes(listing));
    const isLast = before.status === "listed" && listedOn.length === 0;
    const statusThen = isDenied(before, mutedLists) ? "clean" : "unknown";
    const status = isLast ? statusThen : before.status;
    const context = {
      before,
      after: { status, listedOn },
      lists: known,
      outcomes: [],
      checkId: null,
      atMs: clock.nowMs(),
    };
    for (const listing of gone) {
      store.insertEvent(tx, eventOf({ listing, reason: "list_muted", flapping: false }, context));
    }
    return { mutedLists, listedOn, status };
  };

  /** What left the catalogue since it was muted can be sent back. */
  const refuseUnknownLists = (before: TargetRow, mutedLists: readonly string[]): void => {
    const catalogue = [...lists, ...listsFor(before.mode, lists)];
    const ids = catalogue.flatMap(({ id, codes }) => [id, ...codes.map((code) => code.id)]);
    const known = new Set([...ids, ...before.mutedLists, ...before.listedOn]);
    const at = mutedLists.findIndex((id) => !known.has(id));
    if (at === -1) return;
    const near = nearestName(mutedLists[at] ?? "", known);
    const advice = near === null ? "GET /v1/blacklist/lists names them all" : `Did you mean "${near}"?`;
    throw issue(`muted_lists.${at}`, `There is no such list or listing. ${advice}`);
  };

  return {
    find,

    /** Adds a target, or finds the same one: `isNew` tells which. */
    async add(caller: Caller, order: TargetOrder): Promise<{ readonly target: TargetRow; readonly isNew: boolean }> {
      const row = rowOf(caller, order);
      const added = await db.commit((tx) => {
        const same = store.findSame(caller, row.kind, row.value);
        if (same !== undefined) return { target: same, isNew: false };
        if (store.countTargets(caller) >= TARGETS_PER_ACCOUNT_MAX) return null;
        store.insertTarget(tx, row);
        if (row.webhookUrl !== null) turnOnUrl(tx, row, row.webhookUrl);
        return { target: row, isNew: true };
      });
      if (added !== null) return added;
      throw new AppError("conflict", { message: `An account can watch ${TARGETS_PER_ACCOUNT_MAX} targets.` });
    },

    /** Changes what is given. Whatever is paused keeps its history; resumed, it is checked at its time or the next pass. */
    async change(caller: Caller, id: string, wanted: TargetChange): Promise<TargetRow> {
      const known = find(caller, id);
      if (wanted.mutedLists !== undefined) refuseUnknownLists(known, wanted.mutedLists);
      if (wanted.recipients !== undefined) refuseRecipients(wanted.recipients);
      const changed = await db.commit((tx) => {
        const before = store.findTarget(id);
        if (before === undefined) return undefined;
        const { mutedLists, ...rest } = wanted;
        const muted = mutedLists === undefined ? {} : mute(tx, before, [...new Set(mutedLists)].toSorted());
        const isResumed = rest.monitoringEnabled === true && !before.monitoringEnabled;
        const nextCheckAtMs = isResumed ? resumedMs(before) : before.nextCheckAtMs;
        store.updateTarget(tx, id, { ...rest, ...muted, nextCheckAtMs });
        const { webhookUrl } = rest;
        if (webhookUrl !== undefined && webhookUrl !== null) turnOnUrl(tx, before, webhookUrl);
        return store.findTarget(id);
      });
      if (changed === undefined) throw new AppError("not_found", { message: "There is no such target." });
      return changed;
    },

    /** Removes a target and its history. A check that runs is not recorded. */
    async remove(caller: Caller, id: string): Promise<void> {
      find(caller, id);
      await db.commit((tx) => store.removeTarget(tx, id));
    },

    /** The targets of the caller, newest first. */
    list(caller: Caller, filters: TargetFilters): IdSource<TargetRow> {
      const parsed = filters.value === undefined ? null : parseTarget(filters.value, caller.mode);
      if (parsed !== null && !parsed.ok) throw issue("target", parsed.error, "Invalid query");
      const wanted = parsed === null ? filters : { ...filters, ...parsed.value };
      return {
        idBehind: (before, places) => store.idBehind(caller, before, places),
        list: (page) => store.listTargets(caller, wanted, page),
      };
    },

    /** A target as the interface shows it; a paused one with the time at which it would be checked when resumed now. */
    view(target: TargetRow) {
      const { webhookUrl } = target;
      return {
        id: target.id,
        kind: target.kind,
        value: target.value,
        label: target.label,
        status: target.status,
        monitoring_enabled: target.monitoringEnabled,
        listed_on: target.listedOn,
        muted_lists: target.mutedLists,
        last_checked_at: target.lastCheckedAtMs === null ? null : isoTime(target.lastCheckedAtMs),
        next_check_at: isoTime(target.monitoringEnabled ? target.nextCheckAtMs : resumedMs(target)),
        webhook_configured: webhookUrl !== null && !isUrlOff(target, webhookUrl),
        recipients: target.recipients,
        created_at: isoTime(target.createdAtMs),
      };
    },
  };
};

export type Targets = ReturnType<typeof createTargets>;
