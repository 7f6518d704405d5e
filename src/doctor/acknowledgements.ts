import { DAY_MS } from "../foundation/base/days.ts";
import { AppError } from "../foundation/base/errors.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import type { Doctor, DoctorAdvice } from "./doctor.ts";
import type { MachineAcknowledgement, MachineAcknowledgementStore } from "./acknowledgement-store.ts";

/** For how long a warning can be acknowledged, in days. */
export const ACKNOWLEDGED_DAYS = [7, 30, 90] as const;

/** What an operator does about a warning: knows it, for a reason and until a time. */
interface AcknowledgementOrder {
  readonly warning: string;
  readonly reason: string;
  readonly days: (typeof ACKNOWLEDGED_DAYS)[number];
  /** `user:<id>`. */
  readonly by: string;
}

/** A warning that an operator knows about. */
export interface AcknowledgedWarning {
  readonly warning: DoctorAdvice;
  readonly acknowledgement: MachineAcknowledgement;
}

/** What the last run found, for people. */
export interface MachineState {
  /** Null before the first run of this process. */
  readonly checkedAtMs: number | null;
  readonly isRunning: boolean;
  /** How many checks found nothing wrong. */
  readonly passed: number;
  readonly failures: readonly DoctorAdvice[];
  /** The warnings that nobody acknowledged. */
  readonly warnings: readonly DoctorAdvice[];
  readonly acknowledged: readonly AcknowledgedWarning[];
}

/** Warnings of the doctor that operators know about. A failure cannot be acknowledged, and a warning that becomes one shows again. */
export class MachineAcknowledgements {
  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      readonly store: MachineAcknowledgementStore;
      readonly doctor: Pick<Doctor, "latestFindings" | "isRunning">;
    },
  ) {}

  state(): MachineState {
    const { store, doctor } = this.deps;
    const latest = doctor.latestFindings();
    const of = (severity: DoctorAdvice["severity"]) =>
      (latest?.findings ?? []).filter((one) => one.severity === severity);
    const warnings = of("warn");
    const known = new Map(
      warnings.length === 0 ? [] : store.valid(this.runtime.clock.nowMs()).map((one) => [one.warning, one]),
    );
    return {
      checkedAtMs: latest?.atMs ?? null,
      isRunning: doctor.isRunning,
      passed: of("ok").length,
      failures: of("fail"),
      warnings: warnings.filter(({ key }) => !known.has(key)),
      acknowledged: warnings.flatMap((warning) => {
        const acknowledgement = known.get(warning.key);
        return acknowledgement === undefined ? [] : [{ warning, acknowledgement }];
      }),
    };
  }

  /** Throws `not_found` for what is no warning of the last run. */
  async acknowledge({ warning, reason, days, by }: AcknowledgementOrder): Promise<void> {
    const { db, clock } = this.runtime;
    const found = this.deps.doctor.latestFindings()?.findings ?? [];
    if (!found.some(({ key, severity }) => key === warning && severity === "warn"))
      throw new AppError("not_found", { message: "The last check of this machine did not find this warning." });
    const nowMs = clock.nowMs();
    const row = { warning, reason, acknowledgedBy: by, untilMs: nowMs + days * DAY_MS, acknowledgedAtMs: nowMs };
    await db.commit((tx) => this.deps.store.keep(tx, row));
  }

  /** Shows the warning again. Throws `not_found` when it was not acknowledged. */
  async withdraw(warning: string): Promise<void> {
    if (!(await this.runtime.db.commit((tx) => this.deps.store.remove(tx, warning))))
      throw new AppError("not_found", { message: "This warning was not acknowledged." });
  }
}
