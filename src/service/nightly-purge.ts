import type { Sessions } from "../accounts/sessions.ts";
import type { SetupLinks } from "../accounts/setup-links.ts";
import type { ExpiredLists, ListExpiry } from "../bulk/run/job-changes.ts";
import { returnFreePages } from "../foundation/db/free-pages.ts";
import { clearPageGaps } from "../foundation/db/page-gaps.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { BounceExpiry } from "../verify/bounces/bounce-expiry.ts";
import type { ExpiredVerifications, VerificationExpiry } from "../verify/checks.ts";

/** What a run removed, and how much space it returned. */
export interface Purged extends ExpiredVerifications, ExpiredLists {
  readonly sessions: number;
  readonly links: number;
  readonly bounces: number;
  readonly bytes: number;
}

const NOT_CLEARED = {
  busy: "another program, such as a backup or Litestream, reads it; the next purge tries again",
  unsupported: "stop the server and run: postwarden compact",
} as const;

interface PurgedParts {
  readonly verifications: VerificationExpiry;
  readonly lists: ListExpiry;
  readonly sessions: Pick<Sessions, "purge">;
  readonly setupLinks: Pick<SetupLinks, "purge">;
  readonly bounces: Pick<BounceExpiry, "run">;
}

/** Removes expired verifications, lists, sessions and set-up links, then returns and clears the space, all in short transactions. */
export class NightlyPurge {
  #isStopping: boolean = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "log" | "clock">,
    private readonly deps: PurgedParts,
  ) {}

  run(): Promise<Purged> {
    const run = this.#purge();
    this.#running = run.catch(() => undefined);
    return run;
  }

  /** Ends a run after its present step; the next run resumes. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([this.deps.lists.stop(), this.#running]);
  }

  async #purge(): Promise<Purged> {
    const { db, log } = this.runtime;
    const { verifications, lists, sessions, setupLinks, bounces } = this.deps;
    const isStopping = () => this.#isStopping;
    const expired = { ...(await verifications.run(isStopping)), ...(await lists.run(isStopping)) };
    const ended = { sessions: await sessions.purge(isStopping), links: await setupLinks.purge(isStopping) };
    const returned = { bounces: await bounces.run(isStopping) };
    const purged = { ...expired, ...ended, ...returned, bytes: await returnFreePages(db, isStopping) };
    const { listEvidence: list_evidence, bytes: bytes_returned, ...rest } = purged;
    if (Object.values(purged).some((count) => count > 0))
      log.info("expired data removed", { ...rest, list_evidence, bytes_returned });
    await this.#clearGaps();
    return purged;
  }

  /** Clears what was deleted since the last night, by anybody, from the unused space of pages. */
  async #clearGaps(): Promise<void> {
    const { db, log, clock } = this.runtime;
    const { outcome, pages } = await clearPageGaps(db, () => this.#isStopping, clock);
    if (outcome === "cleared" || outcome === "stopped") log.debug("unused space cleared", { pages, outcome });
    else log.warn(`unused space of the database was not cleared: ${NOT_CLEARED[outcome]}`, { pages, reason: outcome });
  }
}
