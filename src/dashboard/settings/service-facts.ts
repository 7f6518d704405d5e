import type { LoggedProblem } from "../../foundation/base/recent-problems.ts";
import type { DoctorAdvice } from "../../doctor/doctor-advice.ts";
import type { RetentionFact } from "./account.tsx";

/** Scheduled backups, the newest first. `problem`: why the last one failed. */
interface BackupFacts {
  readonly stored: ReadonlyArray<{ readonly file: string; readonly atMs: number }>;
  readonly problem: string | null;
  readonly isRequested: boolean;
}

/** An egress. `problem`: why it cannot be used, as a sentence without its subject. */
interface EgressFacts {
  readonly name: string;
  readonly problem: string | null;
  readonly cooldowns: ReadonlyArray<{ readonly provider: string; readonly leftMs: number }>;
  /** Those beyond the first ones are only counted. */
  readonly cooldownCount: number;
}

/** How the service fares. Times are milliseconds since 1970, sizes bytes; null where nothing is known. */
export interface ServiceFacts {
  readonly version: string;
  readonly commit: string | null;
  readonly startedAtMs: number;
  readonly memoryBytes: number;
  /** Why addresses cannot be verified, and what else needs attention. */
  readonly blockers: readonly string[];
  readonly findings: readonly string[];
  /** Sizes of what is on the disk. */
  readonly sizes: ReadonlyArray<{ readonly what: string; readonly bytes: number }>;
  readonly disk: { readonly freeBytes: number; readonly totalBytes: number } | null;
  readonly backups: BackupFacts | null;
  readonly egresses: readonly EgressFacts[];
  /** What the last check of the machine found about DNS and connections to mail hosts; null before the first. */
  readonly network: readonly DoctorAdvice[] | null;
  /** Mail hosts and providers that are left alone for a while. */
  readonly cooldowns: number;
  readonly queues: ReadonlyArray<{
    readonly what: string;
    readonly count: number | null;
    readonly oldestMs: number | null;
  }>;
  readonly problems: readonly LoggedProblem[];
  readonly retention: readonly RetentionFact[];
}
