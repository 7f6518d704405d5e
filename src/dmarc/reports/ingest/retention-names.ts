import { inSteps, pagesOf, type StepLimits } from "../../../foundation/base/in-steps.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { AddressedSource, NameRetentionStore, SourceAddressName } from "./retention-store.ts";

/** What the retention of names uses beside the runtime. */
export interface NameRetentionParts {
  readonly store: NameRetentionStore;
  /** The keys under which a stored source may be classified. */
  readonly keysOf: (key: string, address: SourceAddressName | null) => readonly string[];
}

/** Names looked up in one transaction: each may require reading every stored day. */
const NAMES_AT_ONCE = 20;
const CLASSIFICATIONS_AT_ONCE = 500;
/** Rows read before others have their turn. */
const ROWS_AT_ONCE = 2_000;
/** Reverse names examined in one run. */
const REVERSE_NAMES_MAX = 10_000;
const REMOVED_AT_ONCE = 500;
/** A little more than the time between two runs. */
const AHEAD_MS = 2 * 3_600_000;

/** Keys that do not depend on the reverse name of an address. */
const NAMELESS = /^(?:dkim|spf|ip|net):/;

/** The service ends. The next run resumes. */
export class RetentionStopped extends Error {}

/** Expires header_from domains, classifications and reverse names that nothing refers to any more. */
export class NameRetention {
  #isStopping: boolean = false;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly parts: NameRetentionParts,
  ) {}

  /** The running work throws `RetentionStopped` before its next step. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Expires the header_from domains of a domain under which nothing is counted; `day` is the first that is kept. */
  async expireNames(domain: number, day: number): Promise<void> {
    const { store } = this.parts;
    for await (const names of this.#pages((after) => store.namesBefore(domain, after, day, NAMES_AT_ONCE))) {
      await this.runtime.db.commit((tx) => {
        for (const name of names) if (!store.isCounted(domain, name)) store.removeName(tx, domain, name);
      });
    }
  }

  /** Expires classifications from before a time that apply to no source. */
  async expireClassifications(domain: number, beforeMs: number): Promise<void> {
    const { store } = this.parts;
    const pages = this.#pages((after) => store.classifiedBefore(domain, after, beforeMs, CLASSIFICATIONS_AT_ONCE));
    for await (const keys of pages) {
      const unused = new Set(keys);
      await this.#keepUsedKeys(domain, unused);
      await this.runtime.db.commit((tx) => {
        for (const key of unused) store.removeClassification(tx, domain, key, beforeMs);
      });
    }
  }

  /** Expires reverse names that are due for another lookup soon and that no source needs. */
  async expireReverseNames(): Promise<void> {
    const { store } = this.parts;
    const beforeMs = this.runtime.clock.nowMs() + AHEAD_MS;
    const unused = new Set(store.reverseNamesDue(beforeMs, REVERSE_NAMES_MAX));
    await this.#keepUsedAddresses(unused);
    const expired = [...unused];
    await inSteps(async () => {
      const some = expired.splice(-REMOVED_AT_ONCE);
      await this.runtime.db.commit((tx) => {
        for (const ip of some) store.removeReverseName(tx, ip, beforeMs);
      });
      return some.length;
    }, this.#limits);
  }

  /** Pages of texts in their order, each after the last one of the page before. */
  #pages(read: (after: string) => string[]): AsyncGenerator<readonly string[]> {
    return pagesOf({ start: "", read, positionOf: (text) => text }, this.#limits);
  }

  async *#sourcesOf(domain: number): AsyncGenerator<AddressedSource> {
    const read = (after: string) => this.parts.store.sourcesAfter(domain, after, ROWS_AT_ONCE);
    for await (const sources of pagesOf({ start: "", read, positionOf: ({ key }) => key }, this.#limits))
      yield* sources;
  }

  /** Removes the keys from a set that some source has, or may have after further DNS lookups of its address. */
  async #keepUsedKeys(domain: number, keys: Set<string>): Promise<void> {
    const { keysOf } = this.parts;
    let isOneUnnamed = false;
    for await (const { key, address } of this.#sourcesOf(domain)) {
      if (keys.size === 0) return;
      for (const used of keysOf(key, address)) keys.delete(used);
      if (address === null) continue;
      // A classification of a network applies to all addresses in it.
      for (const used of keysOf(key, { ...address, name: null, isConfirmed: false })) keys.delete(used);
      isOneUnnamed ||= !address.isConfirmed;
    }
    // A reverse name may be missing for a week, and with it the key.
    if (isOneUnnamed) for (const key of keys) if (!NAMELESS.test(key)) keys.delete(key);
  }

  /** Removes the addresses from a set that some source has. */
  async #keepUsedAddresses(ips: Set<string>): Promise<void> {
    if (ips.size === 0) return;
    const read = (after: number) => this.parts.store.addressesAfter(after, ROWS_AT_ONCE);
    for await (const some of pagesOf({ start: 0, read, positionOf: ({ number }) => number }, this.#limits)) {
      for (const { ip } of some) if (ip !== null) ips.delete(ip);
      if (ips.size === 0) return;
    }
  }

  get #limits(): StepLimits {
    return {
      isStopping: () => {
        if (this.#isStopping) throw new RetentionStopped();
        return false;
      },
    };
  }
}
