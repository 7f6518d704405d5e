import { DAY_MS } from "../foundation/base/days.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { titleOf, warningKey, type DoctorCheck, type DoctorFinding } from "./doctor-check.ts";

/** What the last run found, the worst first. */
export interface Examination {
  readonly atMs: number;
  readonly findings: readonly DoctorAdvice[];
}

/** A run soon after another one is refused its queries: mail hosts and blocklists would see a burst. */
const PAUSE_MS = 30_000;
const ORDER = { fail: 0, warn: 1, ok: 2 } as const;

/** Examines the machine inside the service: daily, and when somebody asks for it; one run at a time. */
export class Doctor {
  readonly #runtime: Pick<Runtime, "clock" | "log">;
  readonly #examine: () => Promise<readonly DoctorFinding[]>;
  #running: Promise<Examination | null> | null = null;
  #last: Examination | null = null;
  #startedMs: number | null = null;

  constructor(runtime: Pick<Runtime, "clock" | "log">, examine: () => Promise<readonly DoctorFinding[]>) {
    this.#runtime = runtime;
    this.#examine = examine;
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** What the last run of this process found; null before the first. */
  latestFindings(): Examination | null {
    return this.#last;
  }

  /** Runs all checks, or waits for the run that is under way; within 30 s of the last one, returns what that found. */
  run(): Promise<Examination | null> {
    const nowMs = this.#runtime.clock.monotonicMs();
    if (this.#running !== null) return this.#running;
    if (this.#startedMs !== null && nowMs - this.#startedMs < PAUSE_MS) return Promise.resolve(this.#last);
    this.#startedMs = nowMs;
    this.#running = this.#runOnce().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Begins a run; false when the last one began less than 30 s ago and is over. */
  start(): boolean {
    void this.run();
    return this.isRunning;
  }

  /** The scheduled job: runs when the last run is a day old. */
  async runIfDue(): Promise<void> {
    const nowMs = this.#runtime.clock.monotonicMs();
    if (this.#startedMs === null || nowMs - this.#startedMs >= DAY_MS) await this.run();
  }

  async #runOnce(): Promise<Examination | null> {
    const { clock, log } = this.#runtime;
    try {
      const found = await this.#examine();
      const findings = found.map(adviceOf).toSorted((a, b) => ORDER[a.severity] - ORDER[b.severity]);
      this.#last = { atMs: clock.nowMs(), findings };
    } catch (error) {
      log.error("the checks of this machine failed", { error });
    }
    return this.#last;
  }
}

/** A finding for people who look at a page. */
export interface DoctorAdvice {
  /** Identifies it from run to run (`warningKey`). */
  readonly key: string;
  /** `Outgoing port 25`. */
  readonly title: string;
  readonly area: string;
  readonly severity: DoctorCheck["state"];
  /** What was found. */
  readonly detail: string;
  /** What to do; null when there is nothing, or it is part of `detail`. */
  readonly remedy: string | null;
}

/** Where the sentence begins that says what to do. */
const REMEDY =
  /(?<=[.!?)] )(?=(?:Ask|Check|Choose|Correct|Free|Give|Install|Lower|Make|Move|Name|Open|Publish|Raise|Register|Remove|Restart|Run|See|Set|Start|Stop|Use)\b)/;

/** Splits a message at the sentence that says what to do. */
export const adviceOf = ({ area, check, state, message }: DoctorFinding): DoctorAdvice => {
  const at = state === "ok" ? -1 : message.search(REMEDY);
  return {
    key: warningKey({ check, message }),
    title: titleOf(check) ?? area,
    area,
    severity: state,
    detail: at < 0 ? message : message.slice(0, at).trim(),
    remedy: at < 0 ? null : message.slice(at),
  };
};

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** How many findings need attention, in the same words on every page: "1 failure, 2 warnings". */
export const troubleText = (findings: ReadonlyArray<Pick<DoctorAdvice, "severity">>): string => {
  const count = (of: DoctorAdvice["severity"]): number => findings.filter(({ severity }) => severity === of).length;
  const [failures, warnings] = [count("fail"), count("warn")];
  const parts = [failures > 0 ? counted(failures, "failure") : "", warnings > 0 ? counted(warnings, "warning") : ""];
  return parts.filter((part) => part !== "").join(", ") || "In order";
};
