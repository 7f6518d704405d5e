/** Gives every distinct text a number from 0, in the order in which they first come. */
export interface Positions {
  /** The number of a text; `isNew` when it comes for the first time. */
  place(text: string): { readonly position: number; readonly isNew: boolean };
  size(): number;
}

/** Slots for every text that may come: so full a table still finds its places quickly. */
const SLOTS_PER_TEXT = 1.6;
const SLOTS_MIN = 1024;
const EMPTY = -1;

/**
 * Numbers up to `textsMax` texts within 34 MB for a million. Texts are told apart by 96 bits of hashes with a seed that
 * nobody outside knows, not by themselves: that two of a million share them has a chance of one in 10^17.
 */
export const createAddressIndex = (textsMax: number, seed: bigint): Positions => {
  const slots = 2 ** Math.ceil(Math.log2(Math.max(SLOTS_MIN, textsMax * SLOTS_PER_TEXT)));
  const mask = slots - 1;
  const first = new BigUint64Array(slots);
  const second = new Uint32Array(slots);
  const positions = new Int32Array(slots).fill(EMPTY);
  const otherSeed = seed ^ 0x9e37_79b9_7f4a_7c15n;
  let size = 0;

  return {
    place(text) {
      const one = Bun.hash.wyhash(text, seed);
      const other = Number(Bun.hash.wyhash(text, otherSeed) & 0xffff_ffffn);
      let slot = Number(one & 0xffff_ffffn) & mask;
      for (;;) {
        const position = positions[slot] ?? EMPTY;
        if (position === EMPTY) break;
        if (first[slot] === one && second[slot] === other) return { position, isNew: false };
        slot = (slot + 1) & mask;
      }
      if (size >= textsMax) throw new Error(`more than ${textsMax} texts`);
      first[slot] = one;
      second[slot] = other;
      positions[slot] = size;
      return { position: size++, isNew: true };
    },
    size: () => size,
  };
};
