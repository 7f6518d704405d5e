import { DAY_MS, dayOfTime } from "../../foundation/base/days.ts";
import { backgroundTurn } from "../../foundation/base/fair-queue.ts";
import { inSteps } from "../../foundation/base/in-steps.ts";
import { type ByMode, newId, sha256 } from "../../foundation/base/secrets.ts";
import { readById, walk, type WalkPage } from "../../foundation/base/walk.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Attempts } from "../attempts.ts";
import { providerOf } from "../domain-evidence.ts";
import type { HistoryOwner } from "../history-store.ts";
import { unpackEvidence } from "../store.ts";
import { type KeptPromises, PromiseCounts } from "./promise-counts.ts";
import { BounceAwareAttempts } from "./known-bounces.ts";
import type { Bounce, EventReading, UnreadEvent } from "./bounce.ts";
import type { BounceCount, BounceFilters, BounceStore, StoredBounce } from "./bounce-store.ts";

/** What became of an event; `known`: it was stored before. */
export interface EventOutcome {
  /** The place of the event in the request, from 1. */
  readonly position: number;
  readonly outcome: "stored" | "known" | "ignored" | "unreadable";
  readonly kind: Bounce["kind"] | null;
  /** Why it is ignored or unreadable; null for a bounce. */
  readonly reason: string | null;
}

/** Addresses that bounced hard, by what had been said about them. */
export interface PromisedCounts {
  deliverable: number;
  risky: number;
  undeliverable: number;
  not_verified: number;
}

export interface ProviderBounces {
  /** Null: nothing is known about the mail hosts of the addresses. */
  readonly provider: string | null;
  readonly hard: PromisedCounts;
  soft: number;
  readonly promises: KeptPromises;
}

/** What bounced, and what checks had promised. */
export interface BounceSummary {
  /** The first day (since 1970, UTC) whose checks are counted; null when there are none. */
  readonly checksFromDay: number | null;
  readonly total: KeptPromises;
  readonly providers: readonly ProviderBounces[];
}

/** Events stored in one transaction, and rows removed in one: some milliseconds. */
const ROWS_AT_ONCE = 20;
/** Rows examined in one go where few pass the filters: some milliseconds. */
const EXAMINED_AT_ONCE = 5_000;
/** Bounces counted in one go. */
const COUNTED_AT_ONCE = 2_000;

/** What others report about mail that came back. */
export class Bounces {
  readonly #promises: PromiseCounts;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly store: BounceStore,
  ) {
    this.#promises = new PromiseCounts(runtime.db);
  }

  /** Reads events, and stores the bounces among them, in their order. Those of test keys are not stored. */
  async add({ accountId, mode }: HistoryOwner, events: readonly UnreadEvent[]): Promise<EventOutcome[]> {
    const outcomes: EventOutcome[] = [];
    for (let at = 0; at < events.length; at += ROWS_AT_ONCE) {
      await backgroundTurn(accountId);
      const some = events.slice(at, at + ROWS_AT_ONCE).map((read) => read());
      const stored = await this.runtime.db.commit((tx) =>
        some.map(
          (event) => event.outcome === "bounce" && (mode === "test" || this.#insert(tx, accountId, event.bounce)),
        ),
      );
      outcomes.push(...some.map((event, index) => outcomeOf(event, at + index + 1, stored[index] === true)));
    }
    return outcomes;
  }

  /**
   * Stores what one mail of the bounce mailbox reports; `stored` is called in the last transaction. A mail that was stored in part is
   * read again, and what is known counts once.
   */
  async addMail(
    accountId: string,
    { outcome, bounces }: { readonly outcome: string; readonly bounces: readonly Bounce[] },
    stored: (tx: Tx) => void,
  ): Promise<void> {
    const { db } = this.runtime;
    for (let at = 0; at === 0 || at < bounces.length; at += ROWS_AT_ONCE) {
      await backgroundTurn(accountId);
      await db.commit((tx) => {
        for (const bounce of bounces.slice(at, at + ROWS_AT_ONCE)) this.#insert(tx, accountId, bounce);
        if (at + ROWS_AT_ONCE < bounces.length) return;
        db.note(tx, { kind: "bounce_mail", outcome });
        stored(tx);
      });
    }
  }

  /** The newest first. */
  source({ accountId, mode }: HistoryOwner, filters: BounceFilters) {
    const { store } = this;
    return readById<StoredBounce>(
      (window) => (mode === "test" ? [] : store.list(accountId, filters, window)),
      // The index finds those of an address.
      (before, places) =>
        mode === "test" || filters.email !== undefined ? null : store.idBehind(accountId, before, places),
    );
  }

  /** A page of them, older than the id `before`. It may have fewer rows than `limit` and still a next one. */
  page(
    owner: HistoryOwner,
    filters: BounceFilters,
    window: { readonly before: string | null; readonly limit: number },
  ): Promise<WalkPage<StoredBounce, string | null>> {
    const read = this.source(owner, filters);
    return walk({ read, keyOf: ({ id }) => id, step: EXAMINED_AT_ONCE }, { ...window, account: owner.accountId });
  }

  /** Addresses that bounced in the last `days`, by provider, the most hard ones first. */
  async summary({ accountId, mode }: HistoryOwner, days: number): Promise<BounceSummary> {
    const total = { checks: 0, bounced: 0 };
    if (mode === "test") return { checksFromDay: null, total, providers: [] };
    const { store } = this;
    const fromMs = this.runtime.clock.nowMs() - days * DAY_MS;
    const { fromDay, byProvider: promises } = this.#promises.since(accountId, dayOfTime(fromMs));
    const counts: BounceCount[] = [];
    for (let after = ""; ;) {
      await backgroundTurn(accountId);
      const range = store.addressesBehind(accountId, after, COUNTED_AT_ONCE);
      if (range === null) break;
      counts.push(...store.counts(accountId, fromMs, range));
      if (fromDay !== null) this.#promises.addBounced(promises, accountId, fromDay, range);
      after = range.upTo;
    }
    for (const { checks, bounced } of promises.values()) {
      total.checks += checks;
      total.bounced += bounced;
    }
    return { checksFromDay: fromDay, total, providers: byProvider(counts, promises) };
  }

  /** Attempts that know of the bounces. Those of test keys do not: they say the same every time. */
  addedTo(attempts: ByMode<Attempts>): ByMode<Attempts> {
    const { runtime, store } = this;
    return { ...attempts, live: new BounceAwareAttempts(runtime, { attempts: attempts.live, store }) };
  }

  /** Removes what was stored more than `days` ago, in short transactions; null: nothing. Returns how many. */
  async expire(days: number | null, isStopping: () => boolean): Promise<number> {
    if (days === null) return 0;
    const beforeMs = this.runtime.clock.nowMs() - days * DAY_MS;
    const { db } = this.runtime;
    const removeCounts = () => db.commit((tx) => this.#promises.expire(tx, dayOfTime(beforeMs), ROWS_AT_ONCE));
    await inSteps(removeCounts, { isStopping });
    const remove = () => db.commit((tx) => this.store.expire(tx, beforeMs, ROWS_AT_ONCE));
    const { count } = await inSteps(remove, { isStopping });
    return count;
  }

  /** Stores a bounce with what had been said about its address. False when it was stored before. */
  #insert(tx: Tx, accountId: string, { eventKey, ...bounce }: Bounce): boolean {
    const { email, bouncedAtMs } = bounce;
    const promised = this.store.promised(accountId, email, bouncedAtMs);
    return this.store.insert(tx, {
      ...bounce,
      id: newId(),
      accountId,
      eventKey: sha256(eventKey),
      createdAtMs: this.runtime.clock.nowMs(),
      promised: promised?.verdict ?? null,
      promisedAtMs: promised?.atMs ?? null,
      soughtAtMs: null,
      provider: providerIn(promised?.evidence ?? null),
      refutedAtMs: this.store.provedAfter(accountId, email, bouncedAtMs),
    });
  }
}

/** Who runs the mail hosts that a check found. */
export const providerIn = (stored: Uint8Array | null): string | null => {
  if (stored === null) return null;
  try {
    const host = unpackEvidence(stored).domain?.hosts[0]?.host;
    return host === undefined ? null : providerOf(host);
  } catch {
    // Evidence that cannot be read any more says nothing.
    return null;
  }
};

const outcomeOf = (event: EventReading, position: number, isStored: boolean): EventOutcome =>
  event.outcome === "bounce"
    ? { position, outcome: isStored ? "stored" : "known", kind: event.bounce.kind, reason: null }
    : { position, outcome: event.outcome, kind: null, reason: event.reason };

const byProvider = (
  counts: readonly BounceCount[],
  promises: ReadonlyMap<string | null, KeptPromises>,
): ProviderBounces[] => {
  const found = new Map<string | null, ProviderBounces>();
  for (const { provider, kind, promised, addresses } of counts) {
    const hard = { deliverable: 0, risky: 0, undeliverable: 0, not_verified: 0 };
    const entry = found.get(provider) ?? {
      provider,
      hard,
      soft: 0,
      promises: (provider === null ? undefined : promises.get(provider)) ?? { checks: 0, bounced: 0 },
    };
    if (kind === "soft") entry.soft += addresses;
    else entry.hard[promised ?? "not_verified"] += addresses;
    found.set(provider, entry);
  }
  return [...found.values()].toSorted(
    (a, b) =>
      sumOf(b.hard) - sumOf(a.hard) || b.soft - a.soft || Number(a.provider === null) - Number(b.provider === null),
  );
};

const sumOf = (counts: PromisedCounts): number => Object.values(counts).reduce((sum, one) => sum + one, 0);
