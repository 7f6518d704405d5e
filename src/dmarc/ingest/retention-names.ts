import { type Clock, nextTurn } from "../../base/clock.ts";
import type { Db } from "../../db/open.ts";
import type { AddressedSource, SourceAddressName, NameRetentionStore } from "./retention-names-store.ts";

export interface NameRetentionDeps {
  readonly db: Db;
  readonly store: NameRetentionStore;
  readonly clock: Clock;
  /** The keys under which a stored source may be classified. */
  readonly keysOf: (key: string, address: SourceAddressName | null) => readonly string[];
}

/** Names looked up in one transaction: each may take a look at every day that is kept. */
const NAMES_AT_ONCE = 20;
const WORDS_AT_ONCE = 500;
/** Rows read before others get their turn. */
const ROWS_AT_ONCE = 2_000;
/** Reverse names looked at in one run; the others wait for the next one. */
const REVERSE_NAMES_MAX = 10_000;
const REMOVED_AT_ONCE = 500;
/** A little more than the time between two runs. */
const AHEAD_MS = 2 * 3_600_000;

/** Keys that do not depend on the reverse name of an address. */
const NAMELESS = /^(?:dkim|spf|ip|net):/;

/** The service ends. What is left is for the next run. */
export class RetentionStopped extends Error {}

/** Names, words and reverse names go when nothing that is kept speaks of them any more. */
export const createNameRetention = ({ db, store, clock, keysOf }: NameRetentionDeps) => {
  let isStopping = false;
  const goOn = (): void => {
    if (isStopping) throw new RetentionStopped();
  };

  /** All sources of a domain, in pages. */
  async function* sourcesOf(domain: number): AsyncGenerator<AddressedSource> {
    let after = "";
    for (;;) {
      goOn();
      const some = store.sourcesAfter(domain, after, ROWS_AT_ONCE);
      const last = some.at(-1);
      if (last === undefined) return;
      after = last.key;
      yield* some;
      await nextTurn();
    }
  }

  /** Removes the keys from a set that some source has, or may have when the DNS has told more of its address. */
  const keepUsedWords = async (domain: number, keys: Set<string>): Promise<void> => {
    let isOneUnnamed = false;
    for await (const { key, address } of sourcesOf(domain)) {
      if (keys.size === 0) return;
      for (const used of keysOf(key, address)) keys.delete(used);
      if (address === null) continue;
      // A classification of a network holds for all addresses in it.
      for (const used of keysOf(key, { ...address, name: null, isConfirmed: false })) keys.delete(used);
      isOneUnnamed ||= !address.isConfirmed;
    }
    // A reverse name may be missing for a week: whose it was is not known then.
    if (isOneUnnamed) for (const key of keys) if (!NAMELESS.test(key)) keys.delete(key);
  };

  /** Removes the addresses from a set that some source has. */
  const keepUsedAddresses = async (ips: Set<string>): Promise<void> => {
    for (let after = 0; ips.size > 0;) {
      goOn();
      const some = store.addressesAfter(after, ROWS_AT_ONCE);
      const last = some.at(-1);
      if (last === undefined) return;
      after = last.number;
      for (const { ip } of some) if (ip !== null) ips.delete(ip);
      await nextTurn();
    }
  };

  return {
    /** Has what goes on throw `RetentionStopped` before its next step. */
    stop(): void {
      isStopping = true;
    },
    /** Forgets the names of a domain under which nothing is counted any more; `day` is the first that is kept. */
    async forgetNames(domain: number, day: number): Promise<void> {
      let after = "";
      for (;;) {
        goOn();
        const some = store.namesBefore(domain, after, day, NAMES_AT_ONCE);
        const last = some.at(-1);
        if (last === undefined) return;
        after = last;
        await db.commit((tx) => {
          for (const name of some) if (!store.isCounted(domain, name)) store.removeName(tx, domain, name);
        });
      }
    },
    /** Removes classifications made before a time that apply to no source any more. */
    async forgetWords(domain: number, beforeMs: number): Promise<void> {
      let after = "";
      for (;;) {
        goOn();
        const some = store.wordsBefore(domain, after, beforeMs, WORDS_AT_ONCE);
        const last = some.at(-1);
        if (last === undefined) return;
        after = last;
        const unused = new Set(some);
        await keepUsedWords(domain, unused);
        await db.commit((tx) => {
          for (const key of unused) store.removeWord(tx, domain, key, beforeMs);
        });
      }
    },
    /** Forgets the reverse names that the DNS would be asked for again soon, and that no source needs. */
    async forgetReverseNames(): Promise<void> {
      const beforeMs = clock.nowMs() + AHEAD_MS;
      const unused = new Set(store.reverseNamesDue(beforeMs, REVERSE_NAMES_MAX));
      await keepUsedAddresses(unused);
      const gone = [...unused];
      for (let at = 0; at < gone.length; at += REMOVED_AT_ONCE) {
        goOn();
        await db.commit((tx) => {
          for (const ip of gone.slice(at, at + REMOVED_AT_ONCE)) store.removeReverseName(tx, ip, beforeMs);
        });
      }
    },
  };
};

export type NameRetention = ReturnType<typeof createNameRetention>;
