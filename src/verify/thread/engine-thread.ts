import { type Clock, nextTurn } from "../../foundation/base/clock.ts";
import type { Log } from "../../foundation/base/log.ts";
import { readAddressCell } from "../../foundation/mail/address-in-cell.ts";
import { type Address, parseAddress } from "../../foundation/mail/address.ts";
import type { AttemptOrder, Attempts, MadeAttempt } from "../attempts.ts";
import { PoolClosed } from "../smtp/pool.ts";
import type { EngineState, FromThread, NumberedOrder, OrderOutcome, ToThread } from "./messages.ts";
import type { TalliedNetwork } from "./network-tally.ts";
import { StateView } from "./state-view.ts";

/** A thread that runs. */
export interface Thread {
  post(message: ToThread): void;
  /** Ends the thread at once. */
  terminate(): void;
}

export interface ThreadEvents {
  readonly message: (message: FromThread) => void;
  /** The thread ended, by itself or by `terminate`; may be called more than once. */
  readonly ended: (error: unknown) => void;
}

export type StartThread = (events: ThreadEvents) => Thread;

export interface EngineThreadDeps {
  readonly start: StartThread;
  readonly clock: Clock;
  readonly log: Log;
  /** Matches the operator's suppression list. */
  readonly matchSuppression: (normalizedEmail: string) => string | null;
  /** For texts that are no addresses, and attempts that ended in a bug: they need no network. */
  readonly own: Attempts;
  /** The state before anything was done. */
  readonly idle: EngineState;
  /** Adds what the thread counted and measured to the metrics. */
  readonly noteNetwork: (tally: TalliedNetwork) => void;
}

/** An order whose outcome is not known yet. */
interface OpenOrder {
  readonly order: NumberedOrder;
  readonly resolve: (made: MadeAttempt) => void;
  readonly reject: (error: unknown) => void;
  /** How many threads ended while they had it. */
  losses: number;
}

/** An order is repeated this often after its thread ended; then it ended in a bug. */
const LOSSES_MAX = 5;
/** Wait before a thread that ended is started again; doubles up to the second figure, and begins anew after the third. */
const RESTART_MS = 1_000;
const RESTART_MS_MAX = 60_000;
const STABLE_MS = 5 * 60_000;
/** A thread that has orders and says nothing for this long hangs: it posts its state twice a second. */
export const SILENT_MS_MAX = 30_000;

const FINDING = "The thread for mail servers ended with an error and is started again. Checks wait for it.";

/**
 * Makes attempts in a thread of its own, which is started for the first one. Orders and outcomes travel in batches, one
 * for each turn of the event loop. When the thread ends by itself, it is started again and gets its open orders again.
 */
export class EngineThread implements Attempts {
  /** What the sessions with mail hosts look like from here. */
  readonly smtp: StateView;
  readonly #open = new Map<number, OpenOrder>();
  #unsent: NumberedOrder[] = [];
  #lastNumber = 0;
  #thread: Thread | null = null;
  #startedMs = 0;
  /** Whether the thread has said anything since the last look. */
  #isHeard: boolean = false;
  #restarts = 0;
  #cancelRestart: (() => void) | null = null;
  #cancelWatch: (() => void) | null = null;
  readonly #drained = Promise.withResolvers<void>();
  #isDraining: boolean = false;

  constructor(private readonly deps: EngineThreadDeps) {
    this.smtp = new StateView(deps.clock, deps.idle);
  }

  make(order: AttemptOrder): Promise<MadeAttempt> {
    if (this.#isDraining) return Promise.reject(new PoolClosed());
    const address = addressIn(order);
    if (address === null) return this.deps.own.make(order);
    const toxic = { entry: this.deps.matchSuppression(address.normalized) };
    return new Promise((resolve, reject) => {
      const numbered = { ...order, toxic, number: ++this.#lastNumber };
      this.#open.set(numbered.number, { order: numbered, resolve, reject, losses: 0 });
      if (this.#unsent.push(numbered) === 1) void nextTurn().then(() => this.#flush());
    });
  }

  fail(order: AttemptOrder): MadeAttempt {
    return this.deps.own.fail(order);
  }

  /** Makes no further attempt; resolves when the last session has ended. Attempts that wait reject with `PoolClosed`. */
  drain(): Promise<void> {
    this.#isDraining = true;
    for (const { number } of this.#unsent.splice(0)) this.#settle({ number, kind: "closed" });
    if (this.#thread === null) this.close();
    else this.#thread.post({ kind: "drain" });
    return this.#drained.promise;
  }

  /** Ends the thread. Attempts that are still open reject with `PoolClosed`. */
  close(): void {
    this.#isDraining = true;
    const thread = this.#thread;
    this.#thread = null;
    this.#cancelRestart?.();
    this.#cancelWatch?.();
    thread?.terminate();
    for (const number of [...this.#open.keys()]) this.#settle({ number, kind: "closed" });
    this.#drained.resolve();
  }

  #flush(): void {
    if (this.#unsent.length === 0 || this.#cancelRestart !== null) return;
    const orders = this.#unsent;
    this.#unsent = [];
    try {
      this.#thread ??= this.#start();
      this.#thread.post({ kind: "orders", orders });
    } catch (error) {
      this.#onEnded(error);
      return;
    }
    if (this.#cancelWatch === null) this.#watch();
  }

  #start(): Thread {
    const { clock, start } = this.deps;
    this.#startedMs = clock.monotonicMs();
    const thread = start({
      message: (message) => {
        if (this.#thread === thread) this.#receive(message);
      },
      ended: (error) => {
        if (this.#thread === thread) this.#onEnded(error);
      },
    });
    return thread;
  }

  #receive(message: FromThread): void {
    this.#isHeard = true;
    switch (message.kind) {
      case "outcomes":
        if (message.delay !== null) this.smtp.noteDelay(message.delay);
        for (const outcome of message.outcomes) this.#settle(outcome);
        return;
      case "state":
        this.deps.noteNetwork(message.tally);
        this.smtp.update(message.state, message.mayTry);
        return;
      case "log":
        this.deps.log[message.level](message.message, message.fields);
        return;
      case "drained":
        this.#drained.resolve();
        return;
      default:
        message satisfies never;
    }
  }

  #settle(outcome: OrderOutcome): void {
    const open = this.#open.get(outcome.number);
    this.#open.delete(outcome.number);
    if (open === undefined) return;
    if (outcome.kind === "made") open.resolve(outcome.made);
    else open.reject(outcome.kind === "closed" ? new PoolClosed() : outcome.error);
  }

  /** The thread ended, or cannot be used: it is started again, later each time, and its orders are repeated. */
  #onEnded(error: unknown): void {
    const { clock, log, idle } = this.deps;
    const thread = this.#thread;
    this.#thread = null;
    thread?.terminate();
    this.#cancelWatch?.();
    this.#cancelWatch = null;
    if (this.#isDraining) {
      this.close();
      return;
    }
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#startedMs >= STABLE_MS) this.#restarts = 0;
    const waitMs = Math.min(RESTART_MS * 2 ** this.#restarts, RESTART_MS_MAX);
    this.#restarts++;
    log.error("the thread for mail servers ended", { error, checks: this.#open.size, again_in_ms: waitMs });
    for (const { order, losses } of this.#open.values())
      if (losses >= LOSSES_MAX) this.#settle({ number: order.number, kind: "bug", error: new Error(FINDING) });
    for (const open of this.#open.values()) open.losses++;
    this.#unsent = [...this.#open.values()].map(({ order }) => order);
    this.smtp.reset(idle, FINDING);
    this.#cancelRestart = clock.after(waitMs, () => {
      this.#cancelRestart = null;
      this.#flush();
    });
  }

  /** Ends a thread that hangs. The whole process may have been paused, so the time since the last message says nothing. */
  #watch(): void {
    this.#isHeard = false;
    this.#cancelWatch = this.deps.clock.after(SILENT_MS_MAX, () => {
      this.#cancelWatch = null;
      if (this.#thread === null || this.#open.size === 0) return;
      if (this.#isHeard) this.#watch();
      else this.#onEnded(new Error(`the thread said nothing for ${SILENT_MS_MAX} ms`));
    });
  }
}

/** The address of an order; null where there is no address in its text. */
const addressIn = ({ submitted, isCell }: AttemptOrder): Address | null => {
  if (isCell) {
    const read = readAddressCell(submitted);
    return read.ok ? read.value.address : null;
  }
  const parsed = parseAddress(submitted);
  return parsed.ok ? parsed.value : null;
};
