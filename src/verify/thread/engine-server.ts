import { type Clock, nextTurn } from "../../foundation/base/clock.ts";
import { TurnGate } from "../../foundation/base/turn-gate.ts";
import type { Attempts } from "../attempts.ts";
import { PoolClosed } from "../smtp/pool.ts";
import type { SmtpView } from "../smtp/open.ts";
import type { LoopDelay } from "../open.ts";
import type { EngineState, FromThread, NumberedOrder, OrderOutcome, ToThread } from "./messages.ts";
import type { NetworkTally } from "./network-tally.ts";

export interface EngineServerDeps {
  readonly attempts: Attempts;
  readonly smtp: SmtpView & { readonly outages: { stop(): void }; readonly pool: { drain(): Promise<void> } };
  readonly clock: Clock;
  readonly post: (message: FromThread) => void;
  readonly tally: NetworkTally;
  /** Processor time of this thread so far, in milliseconds. */
  readonly processorMs: () => number;
}

/** The state is posted this often while there is anything to report. */
const STATE_MS = 500;
/** How often the delay of the event loop is measured while addresses of lists are under way: as lists measure theirs. */
const SAMPLE_MS = 5;

/** Makes the attempts that another thread orders, and posts what it must know of the sessions with mail hosts. */
export class EngineServer {
  readonly #gate: TurnGate;
  #outcomes: OrderOutcome[] = [];
  #delay: LoopDelay | null = null;
  #underWay = 0;
  #bulkUnderWay = 0;
  #isStateDue: boolean = false;
  #isMeasuring: boolean = false;
  #postedShortageMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: EngineServerDeps) {
    this.#gate = new TurnGate(deps.clock);
    deps.smtp.outages.onChange(() => this.#postState());
  }

  receive(message: ToThread): void {
    if (message.kind === "drain") void this.#drain();
    else for (const order of message.orders) void this.#makeInTurn(order);
  }

  /** Lists limit what they order by the delay of the loop; single checks, which come as they please, begin a few in each turn. */
  async #makeInTurn(order: NumberedOrder): Promise<void> {
    const { priority, account } = order.onBehalfOf;
    const waiting = priority === "realtime" ? this.#gate.enter(() => account) : null;
    if (waiting !== null) await waiting;
    await this.#make(order);
  }

  async #make(order: NumberedOrder): Promise<void> {
    const isBulk = order.onBehalfOf.priority === "bulk";
    this.#underWay++;
    if (isBulk) this.#bulkUnderWay++;
    if (!this.#isStateDue) this.#postStateLater();
    if (isBulk && !this.#isMeasuring) this.#measure();
    const outcome = await this.#outcomeOf(order);
    this.#underWay--;
    if (isBulk) this.#bulkUnderWay--;
    if (this.#outcomes.push(outcome) === 1) void nextTurn().then(() => this.#flush());
  }

  async #outcomeOf(order: NumberedOrder): Promise<OrderOutcome> {
    const { number } = order;
    try {
      const made = await this.deps.attempts.make(order);
      return { number, kind: "made", made: withOwnBytes(made) };
    } catch (error) {
      if (error instanceof PoolClosed) return { number, kind: "closed" };
      return { number, kind: "bug", error: error instanceof Error ? error : new Error(String(error)) };
    }
  }

  #flush(): void {
    const [outcomes, delay] = [this.#outcomes, this.#delay];
    this.#outcomes = [];
    this.#delay = null;
    if (outcomes.length > 0) this.deps.post({ kind: "outcomes", outcomes, delay });
    if (this.deps.smtp.outages.lastShortageMs() > this.#postedShortageMs) this.#postState();
  }

  async #drain(): Promise<void> {
    const { outages, pool } = this.deps.smtp;
    outages.stop();
    await pool.drain();
    await nextTurn();
    this.#flush();
    this.#postState();
    this.deps.post({ kind: "drained" });
  }

  #postStateLater(): void {
    this.#isStateDue = true;
    this.deps.clock.after(STATE_MS, () => {
      this.#isStateDue = false;
      const { connections, waiting, cooldowns, outages, brokenEgresses, egresses } = this.#postState();
      const isQuiet =
        connections + waiting + cooldowns + outages.length + brokenEgresses.length === 0 &&
        egresses.every(({ cooldownCount, problem }) => cooldownCount === 0 && problem === null);
      if (this.#underWay > 0 || !isQuiet) this.#postStateLater();
    });
  }

  #postState(): EngineState {
    const { smtp, post, tally } = this.deps;
    const state = this.#state();
    this.#postedShortageMs = smtp.outages.lastShortageMs();
    post({ kind: "state", state, mayTry: smtp.outages.takeTurn(), tally: tally.take() });
    return state;
  }

  #state(): EngineState {
    const { outages, egresses, pacing, pool } = this.deps.smtp;
    const shortageMs = outages.lastShortageMs();
    return {
      paused: outages.current(),
      outages: outages.findings(),
      brokenEgresses: egresses.findings(),
      egresses: egresses.states(),
      cooldowns: pacing.countCooldowns(),
      connections: pool.connections(),
      waiting: pool.waiting(),
      hosts: pool.hosts(),
      shortageAgoMs: Number.isFinite(shortageMs) ? this.deps.clock.monotonicMs() - shortageMs : null,
    };
  }

  #measure(): void {
    const { clock, processorMs } = this.deps;
    this.#isMeasuring = true;
    const dueMs = clock.monotonicMs() + SAMPLE_MS;
    const beforeMs = processorMs();
    clock.after(SAMPLE_MS, () => {
      const lateMs = Math.max(0, clock.monotonicMs() - dueMs);
      const ownMs = Math.max(0, Math.min(lateMs, processorMs() - beforeMs - SAMPLE_MS));
      const before = this.#delay ?? { lateMs: 0, ownMs: 0 };
      this.#delay = { lateMs: Math.max(before.lateMs, lateMs), ownMs: Math.max(before.ownMs, ownMs) };
      this.#isMeasuring = this.#bulkUnderWay > 0;
      if (this.#isMeasuring) this.#measure();
    });
  }
}

/** Packed evidence is a part of a larger buffer, all of which would be copied to the other thread. */
const withOwnBytes = <T extends { readonly evidence?: Uint8Array | null } | object>(made: T): T =>
  "evidence" in made && made.evidence instanceof Uint8Array
    ? { ...made, evidence: new Uint8Array(made.evidence) }
    : made;
