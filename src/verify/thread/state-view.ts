import type { Clock } from "../../foundation/base/clock.ts";
import type { SmtpView } from "../smtp/open.ts";
import type { LoopDelay } from "../open.ts";
import type { EngineState } from "./messages.ts";

/** The thread measures the delay of its event loop at least this often while it is not late. */
const MEASURED_MS = 10;

/** The sessions with mail hosts of another thread, as its last message says. */
export class StateView implements SmtpView {
  readonly #listeners = new Set<() => void>();
  #state: EngineState;
  #finding: string | null = null;
  #shortageMs = Number.NEGATIVE_INFINITY;
  #mayTry: boolean = false;
  #delay: LoopDelay | null = null;
  #delayUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: Pick<Clock, "monotonicMs">,
    idle: EngineState,
  ) {
    this.#state = idle;
  }

  readonly outages = {
    current: () => this.#state.paused,
    findings: () => [...this.#state.outages, ...(this.#finding === null ? [] : [this.#finding])],
    lastShortageMs: () => this.#shortageMs,
    onChange: (listener: () => void): void => void this.#listeners.add(listener),
    takeTurn: () => {
      const may = this.#mayTry;
      this.#mayTry = false;
      return may;
    },
  };

  readonly egresses = {
    states: () => this.#state.egresses,
    findings: () => [...this.#state.brokenEgresses],
  };

  readonly pacing = { countCooldowns: () => this.#state.cooldowns };

  readonly pool = {
    connections: () => this.#state.connections,
    waiting: () => this.#state.waiting,
    hosts: () => this.#state.hosts,
  };

  /** How late the event loop of the thread was at last; null when it was not measured lately. */
  loopDelay(): LoopDelay | null {
    return this.clock.monotonicMs() <= this.#delayUntilMs ? this.#delay : null;
  }

  /** A measurement counts until the next one is due: as late as this one was. */
  noteDelay(delay: LoopDelay): void {
    this.#delay = delay;
    this.#delayUntilMs = this.clock.monotonicMs() + delay.lateMs + MEASURED_MS;
  }

  update(state: EngineState, mayTry: boolean): void {
    const wasPaused = this.#state.paused;
    this.#state = state;
    this.#finding = null;
    if (state.shortageAgoMs !== null) this.#shortageMs = this.clock.monotonicMs() - state.shortageAgoMs;
    if (mayTry) this.#mayTry = true;
    if (mayTry || wasPaused !== state.paused) this.#notify();
  }

  /** The thread ended: nothing is known until it speaks again. */
  reset(idle: EngineState, finding: string): void {
    this.#state = idle;
    this.#finding = finding;
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
