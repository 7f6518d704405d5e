import type { Random } from "../../foundation/base/secrets.ts";
import type { ListTotals } from "./job-store.ts";

/** Slots of the hash table per address, so that lookups stay short. */
const SLOTS_PER_ADDRESS = 1.6;
const SLOTS_MIN = 1024;
const EMPTY = -1;
const SEED_BITS = 47;

/** A secret random seed for an `AddressIndex`. */
export const newSeed = (random: Random): bigint =>
  BigInt(random.integer(2 ** SEED_BITS)) * BigInt(random.integer(2 ** SEED_BITS) + 1);

/**
 * Numbers the distinct addresses of a list from 0 in order of first occurrence, and counts its rows. Rows without an
 * address have the text "". Takes 34 MB for a million addresses: it compares 96 bits of hashes with a secret seed instead
 * of the texts. The probability that two of a million addresses collide is 1 in 10^17.
 */
export class AddressIndex {
  readonly #mask: number;
  readonly #hashes: BigUint64Array;
  readonly #otherHashes: Uint32Array;
  readonly #positions: Int32Array;
  #size = 0;
  #rows = 0;
  #empty = 0;

  constructor(
    private readonly addressesMax: number,
    private readonly seed: bigint,
  ) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(SLOTS_MIN, addressesMax * SLOTS_PER_ADDRESS)));
    this.#mask = slots - 1;
    this.#hashes = new BigUint64Array(slots);
    this.#otherHashes = new Uint32Array(slots);
    this.#positions = new Int32Array(slots).fill(EMPTY);
  }

  get totals(): ListTotals {
    return { rows: this.#rows, empty: this.#empty, addresses: this.#size - (this.#empty > 0 ? 1 : 0) };
  }

  /** Counts a row and returns the number of its address; `isNew` on the first occurrence. */
  add(normalizedEmail: string): { readonly position: number; readonly isNew: boolean } {
    this.#rows++;
    if (normalizedEmail === "") this.#empty++;
    const hash = Bun.hash.wyhash(normalizedEmail, this.seed);
    const other = Number(Bun.hash.wyhash(normalizedEmail, this.seed ^ 0x9e37_79b9_7f4a_7c15n) & 0xffff_ffffn);
    let slot = Number(hash & 0xffff_ffffn) & this.#mask;
    for (;;) {
      const position = this.#positions[slot] ?? EMPTY;
      if (position === EMPTY) break;
      if (this.#hashes[slot] === hash && this.#otherHashes[slot] === other) return { position, isNew: false };
      slot = (slot + 1) & this.#mask;
    }
    if (this.#size >= this.addressesMax) throw new Error(`more than ${this.addressesMax} addresses`);
    this.#hashes[slot] = hash;
    this.#otherHashes[slot] = other;
    this.#positions[slot] = this.#size;
    return { position: this.#size++, isNew: true };
  }
}
