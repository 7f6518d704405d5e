/** Numbers that look random and are the same in every run. */
export class Dice {
  #state: number;

  constructor(seed = 1) {
    this.#state = seed;
  }

  /** A whole number from 0, less than `below`. */
  roll(below: number): number {
    // Numerical Recipes' linear congruential generator; its high bits are good enough for a story.
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * below);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.roll(items.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }
}
