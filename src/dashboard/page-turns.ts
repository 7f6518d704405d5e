import { type Clock, nextTurn } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { FairQueue } from "../foundation/base/fair-queue.ts";
import { type OnBehalfOf, createShares } from "../foundation/base/on-behalf-of.ts";
import { wait } from "../foundation/base/wait.ts";

/** Requests that wait; those of one caller may take four fifths of these places. */
const WAITING_MAX = 1_000;
const RETRY_S = 5;
/** A shorter rest is not worth a timer. */
const REST_MS_MIN = 1;
/** The longest rest: what holds a turn for longer is not the page alone. */
const REST_MS_MAX = 50;

interface Waiting {
  readonly request: Request;
  readonly begin: () => void;
}

/**
 * Pages hold the event loop for milliseconds each, so they are read and rendered one in a turn of it, the callers in turn.
 * While others wait, they take at most half of the time: a check of an address needs a dozen turns.
 */
export class PageTurns {
  readonly #queue = new FairQueue<Waiting>();
  readonly #places = createShares({ placesMax: WAITING_MAX, realtimeShare: 0 });
  /** Whose turn of the event loop it is. */
  #holder: Request | null = null;
  #isTaken: boolean = false;
  /** Requests that had a turn: what they have done must not end in a refusal. */
  readonly #admitted = new WeakSet<Request>();

  constructor(private readonly clock: Clock) {}

  /**
   * Resolves when the request may hold the event loop until it next waits for something; at once if it still has its turn.
   * 503 at its first turn when too many of this caller wait; an `AbortError` when the client has disconnected meanwhile. `caller`: an account,
   * or the network of a visitor.
   */
  async enter(request: Request, caller: string): Promise<void> {
    if (this.#holder === request) return;
    if (this.#isTaken) await this.#waitForTurn(request, caller);
    else this.#begin(request);
  }

  #begin(request: Request): void {
    this.#isTaken = true;
    this.#holder = request;
    this.#admitted.add(request);
    void this.#handOn();
  }

  async #waitForTurn(request: Request, caller: string): Promise<void> {
    const who: OnBehalfOf = { account: caller, priority: "realtime" };
    if (!this.#admitted.has(request) && !this.#places.mayHold(who)) throw tooMany();
    this.#places.hold(who);
    await new Promise<void>((begin) => this.#queue.add(who, { request, begin }));
    this.#admitted.add(request);
    if (request.signal.aborted) throw new DOMException("The client disconnected", "AbortError");
  }

  /** Gives one request after another its turn, until none waits. */
  async #handOn(): Promise<void> {
    for (;;) {
      const begunMs = this.clock.monotonicMs();
      await nextTurn();
      this.#holder = null;
      if (this.#queue.isEmpty()) break;
      const restMs = Math.min(REST_MS_MAX, this.clock.monotonicMs() - begunMs);
      if (restMs >= REST_MS_MIN) await wait(this.clock, restMs);
      const next = this.#queue.take();
      if (next === undefined) break;
      this.#places.release(next.who);
      this.#holder = next.item.request;
      next.item.begin();
    }
    this.#isTaken = false;
  }
}

const tooMany = (): AppError =>
  new AppError("unavailable", {
    message: "Too many pages are requested at the same time. Try again later.",
    headers: { "retry-after": String(RETRY_S) },
  });
