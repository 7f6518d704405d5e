import { dayOfTime } from "../../../foundation/base/days.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import type { Tx, Db } from "../../../foundation/db/open.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import type { IngestionStore, IncomingReport } from "./ingestion-store.ts";
import type { Clock } from "../../../foundation/base/clock.ts";
import type { Log } from "../../../foundation/base/log.ts";

/** What the intake uses beside the runtime. */
export interface ReportIntakeParts {
  readonly store: IngestionStore;
  readonly domains: Pick<DomainStore, "addUsage">;
  /** Called when an ingestion is pending. */
  readonly kick: () => void;
}

/** Stores mail that is to be read later. */
export class ReportIntake {
  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly parts: ReportIntakeParts,
  ) {}

  /**
   * Stores what came in as a pending ingestion and returns its id; durable when this resolves. `also` is written in the
   * same transaction. Rejects, with nothing stored, when the database cannot be written (disk full, locked for seconds).
   */
  async take(incoming: IncomingReport, also: (tx: Tx, id: string) => void = () => undefined): Promise<string> {
    const { db, clock } = this.runtime;
    const { store, domains, kick } = this.parts;
    const id = newId();
    const receivedAtMs = clock.nowMs();
    await db.commit((tx) => {
      store.insertPending(tx, { ...incoming, id, receivedAtMs });
      const usage = { day: dayOfTime(receivedAtMs), bytes: incoming.bytes.byteLength };
      if (incoming.domain !== null) domains.addUsage(tx, incoming.domain, usage);
      also(tx, id);
    });
    kick();
    return id;
  }
}

const MIB = 1024 * 1024;
/** What report mail leaves free: a twentieth of the disk within these limits; on small disks less than a third. */
const RESERVE_SHARE = 0.05;
const RESERVE_BYTES_MIN = 256 * MIB;
const RESERVE_BYTES_MAX = 1024 * MIB;
const SMALL_DISK_SHARE = 0.3;
/** Ingestion resumes when so much more than the reserve is free, so that it does not change with every mail. */
const RESUME_FACTOR = 1.1;
const CHECK_EVERY_MS = 1_000;
/** A mail is written to the WAL of the database, and from there into it. */
const WRITES_PER_BYTE = 2;

/** The bytes that are kept free on a disk of that size. */
export const reserveOf = (totalBytes: number): number =>
  Math.min(
    Math.max(totalBytes * RESERVE_SHARE, RESERVE_BYTES_MIN),
    RESERVE_BYTES_MAX,
    Math.floor(totalBytes * SMALL_DISK_SHARE),
  );

const mib = (bytes: number): string => `${Math.floor(bytes / MIB)} MiB`;

/**
 * Reserves a part of the disk for everything but report mail, because anyone can send report mail. Logs
 * when report ingestion is paused and resumed.
 */
export class DiskReserve {
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #isPaused: boolean = false;
  #freeBytes = Number.POSITIVE_INFINITY;
  #reserveBytes = 0;

  constructor(
    private readonly runtime: { readonly db: Pick<Db, "diskSpace">; readonly clock: Clock; readonly log: Log },
  ) {}

  /** Whether nothing may be accepted now; with `bytes`, whether they would be too many. */
  isLow(bytes = 0): boolean {
    this.#check();
    return this.#isPaused || this.#freeBytes - bytes * WRITES_PER_BYTE < this.#reserveBytes;
  }

  /** Why ingestion is paused, for the operator; null while it is not. */
  finding(): string | null {
    this.#check();
    return this.#isPaused ? `Report ingestion is paused: ${this.#explanation()}` : null;
  }

  #check(): void {
    const { db, clock, log } = this.runtime;
    if (clock.monotonicMs() - this.#checkedAtMs < CHECK_EVERY_MS) return;
    this.#checkedAtMs = clock.monotonicMs();
    const space = db.diskSpace();
    if (space === null) return;
    this.#freeBytes = space.freeBytes;
    this.#reserveBytes = reserveOf(space.totalBytes);
    const wasPaused = this.#isPaused;
    this.#isPaused = this.#freeBytes < this.#reserveBytes * (wasPaused ? RESUME_FACTOR : 1);
    if (this.#isPaused && !wasPaused) log.error(`report ingestion paused: ${this.#explanation()}`);
    if (!this.#isPaused && wasPaused) log.info("report ingestion resumed: the disk has free space again");
  }

  #explanation(): string {
    return `the disk of the database has ${mib(this.#freeBytes)} free, and ${mib(this.#reserveBytes)} are reserved for other data.`;
  }
}
