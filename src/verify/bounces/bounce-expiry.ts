import type { Bounces } from "./bounces.ts";
import type { ListPromises } from "./list-promises.ts";

/** What the nightly purge does about bounces: finds out what lists had said about them, then removes those that expire. */
export class BounceExpiry {
  constructor(
    private readonly bounces: Pick<Bounces, "expire">,
    private readonly promises: Pick<ListPromises, "run">,
    /** As long as verifications are kept; null: for ever. */
    private readonly days: number | null,
  ) {}

  async run(isStopping: () => boolean): Promise<number> {
    await this.promises.run(isStopping);
    return this.bounces.expire(this.days, isStopping);
  }
}
