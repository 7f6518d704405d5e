import { type Clock, nextTurn } from "../../base/clock.ts";
import type { Db } from "../../db/open.ts";
import type { BareAddress, KeptAddress, NameRetentionStore } from "./retention-names-store.ts";

export interface NameRetentionDeps {
  readonly db: Db;
  readonly store: NameRetentionStore;
  readonly clock: Clock;
  /** The key under which people see an address. */
  readonly addressKeyOf: (address: BareAddress) => string;
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

/** The service ends. What is left is for the next run. */
export class RetentionStopped extends Error {}

/** Names, words and reverse names go when nothing that is kept speaks of them any more. */
export const createNameRetention = ({ db, store, clock, addressKeyOf }: NameRetentionDeps) => {
  let isStopping = false;
  const goOn = (): void => {
    if (isStopping) throw new RetentionStopped();
  };

  /** All the addresses that are sources of a domain, in pages. */
  async function* bareAddresses(domain: number): AsyncGenerator<BareAddress> {
    let after = "";
    for (;;) {
      goOn();
      const some = store.bareAddressesAfter(domain, after, ROWS_AT_ONCE);
      const last = some.at(-1);
      if (last === undefined) return;
      after = last.ip;
      yield* some;
      await nextTurn();
    }
  }

  /** Takes the keys off a set under which a source is seen, or may be seen when its name is known again. */
  const keepUsedWords = async (domain: number, keys: Set<string>): Promise<void> => {
    let isOneUnnamed = false;
    for await (const address of bareAddresses(domain)) {
      keys.delete(addressKeyOf(address));
      // A word about a network holds for all addresses in it.
      keys.delete(addressKeyOf({ ...address, name: null, isConfirmed: false }));
      isOneUnnamed ||= !address.isConfirmed;
    }
    // A reverse name may be missing for a week: whose it was is not known then.
    if (isOneUnnamed) for (const key of keys) if (key.startsWith("ptr:")) keys.delete(key);
  };

  /** Takes the addresses off a set that some source has. */
  const keepUsedAddresses = async (ips: Set<string>): Promise<void> => {
    for (let after = 0; ips.size > 0;) {
      goOn();
      const some = store.sourcesAfter(after, ROWS_AT_ONCE);
      const last = some.at(-1);
      if (last === undefined) break;
      after = last.number;
      for (const { key } of some) if (key.startsWith("ip:")) ips.delete(key.slice("ip:".length));
      await nextTurn();
    }
    for (let after: KeptAddress = { source: 0, ip: "" }; ips.size > 0;) {
      goOn();
      const some = store.addressesAfter(after, ROWS_AT_ONCE);
      const last = some.at(-1);
      if (last === undefined) break;
      after = last;
      for (const { ip } of some) ips.delete(ip);
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
    /** Forgets words about addresses, said before a time, whose addresses are no source any more. */
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
