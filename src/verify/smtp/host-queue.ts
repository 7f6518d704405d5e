import type { Clock } from "../../foundation/base/clock.ts";
import { FairQueue } from "../../foundation/base/fair-queue.ts";
import type { OnBehalfOf, Priority } from "../../foundation/base/on-behalf-of.ts";
import type { SmtpProbe, SmtpProbeResult, SmtpSession } from "../../foundation/net/smtp-session.ts";
import type { Result } from "../../foundation/base/errors.ts";
import { isRefused, type SmtpFailure } from "../../foundation/net/smtp-failure.ts";
import type { SmtpTranscriptLine } from "../../foundation/net/line-socket.ts";

/** One address of a mail host, and the egress to it. */
export interface ProbeTarget {
  readonly host: string;
  readonly address: string;
  readonly port: number;
  /** Name of the egress from which it is dialled. */
  readonly egress: string;
  /** Hosts of one provider share a limit. */
  readonly provider: string;
}

/** A probe, and who waits for its result. */
export interface QueuedProbe {
  readonly probe: SmtpProbe;
  readonly onBehalfOf: OnBehalfOf;
  readonly resolve: (result: ProbeResult) => void;
  readonly reject: (error: unknown) => void;
  /** How often it was put back because the host limits our connections. */
  requeues: number;
}

/** A probe whose turn it is, and the idle connection for it; null: a new one is to be opened. */
export interface NextProbe {
  readonly queued: QueuedProbe;
  readonly idle: Connection | null;
}

/** A probe that was sent. */
export interface ServedProbe {
  /** Null when the connection cannot be used again. */
  readonly connection: Connection | null;
  /** Settles the caller's promise. */
  readonly settle: () => void;
}

interface IdleConnection {
  readonly connection: Connection;
  readonly cancelTimer: () => void;
}

type May = (who: OnBehalfOf) => boolean;
const anybody: May = () => true;

/** What identifies a queue: host names that share an address share its limit. */
export const hostKey = ({ address, port, egress }: ProbeTarget): string => `${address} ${port} ${egress}`;

/** The probes that wait for one address of one mail host from one egress, and its connections. */
export class HostQueue {
  readonly key: string;
  readonly target: ProbeTarget;
  readonly #probes = new FairQueue<QueuedProbe>();
  readonly #idle: IdleConnection[] = [];
  /** Probes that wait. */
  waiting = 0;
  /** Connections that are open, or being opened, and in use. */
  active = 0;
  /** Cancels the wait before the host may be dialled again; null while there is none. */
  cancelPause: (() => void) | null = null;

  constructor(target: ProbeTarget) {
    this.key = hostKey(target);
    this.target = target;
  }

  /** Calls `wake` once after the wait, unless one is under way. */
  wakeAfter(clock: Clock, waitMs: number, wake: () => void): void {
    this.cancelPause ??= clock.after(waitMs, () => {
      this.cancelPause = null;
      wake();
    });
  }

  add(probe: QueuedProbe): void {
    this.waiting++;
    this.#probes.add(probe.onBehalfOf, probe);
  }

  /** Puts a probe back to the front. */
  putBack(probe: QueuedProbe): void {
    this.waiting++;
    this.#probes.addFirst(probe.onBehalfOf, probe);
  }

  /** The next probe of those for whom `may` is true: single verifications first, then round-robin over the accounts. */
  take(may?: May): QueuedProbe | undefined {
    const taken = this.#probes.take(may);
    if (taken !== undefined) this.waiting--;
    return taken?.item;
  }

  takeAll(): QueuedProbe[] {
    const probes: QueuedProbe[] = [];
    for (let probe = this.take(); probe !== undefined; probe = this.take()) probes.push(probe);
    return probes;
  }

  hasProbeFor(may: May): boolean {
    return this.#probes.peek(may) !== null;
  }

  /** Whether this account waits here with this priority. */
  isWaitedFor(who: OnBehalfOf): boolean {
    return this.#probes.has(who);
  }

  /** Everybody who waits here, the next one first. */
  waitingFor(): OnBehalfOf[] {
    return this.#probes.waitingFor();
  }

  /** Of the next probe. */
  get priority(): Priority {
    return this.#probes.peek()?.priority ?? "bulk";
  }

  get hasIdle(): boolean {
    return this.#idle.length > 0;
  }

  addIdle(connection: Connection, cancelTimer: () => void): void {
    this.#idle.push({ connection, cancelTimer });
  }

  /** The connection that became idle last: it is the least likely to have been closed by the server. */
  takeIdle(): Connection | null {
    return this.#removeIdle(this.#idle.pop());
  }

  /** The connection that has been idle longest. */
  takeOldestIdle(): Connection | null {
    return this.#removeIdle(this.#idle.shift());
  }

  /** Nothing waits, runs, is idle or paused. */
  get isEmpty(): boolean {
    return this.waiting === 0 && this.active === 0 && !this.hasIdle && this.cancelPause === null;
  }

  #removeIdle(idle: IdleConnection | undefined): Connection | null {
    idle?.cancelTimer();
    return idle?.connection ?? null;
  }
}

interface WaitingEntry {
  readonly queue: HostQueue;
  readonly onBehalfOf: OnBehalfOf;
  isRemoved: boolean;
}

/**
 * Host queues that need a connection while all are in use: single verifications first, then round-robin over the accounts,
 * in the order of arrival. A queue is in it once for each account and priority that waits there.
 */
export class WaitingHosts {
  readonly #entries = new FairQueue<WaitingEntry>(
    ({ queue, onBehalfOf, isRemoved }) => isRemoved || !queue.isWaitedFor(onBehalfOf),
  );
  readonly #byQueue = new Map<HostQueue, WaitingEntry[]>();

  add(queue: HostQueue): void {
    const known = this.#byQueue.get(queue) ?? [];
    this.#byQueue.set(queue, known);
    for (const who of queue.waitingFor()) {
      const isKnown = known.some(
        ({ onBehalfOf: { account, priority } }) => account === who.account && priority === who.priority,
      );
      if (isKnown) continue;
      const entry = { queue, onBehalfOf: who, isRemoved: false };
      known.push(entry);
      this.#entries.add(who, entry);
    }
  }

  delete(queue: HostQueue): void {
    for (const entry of this.#byQueue.get(queue) ?? []) entry.isRemoved = true;
    this.#byQueue.delete(queue);
  }

  /** Removes the next queue with a probe of somebody for whom `may` is true. */
  shift(may: May = anybody): HostQueue | undefined {
    const queue = this.#entries.take(may)?.item.queue;
    if (queue !== undefined) this.delete(queue);
    return queue;
  }

  /** Removes all, in their order. */
  takeAll(): HostQueue[] {
    const queues: HostQueue[] = [];
    for (let queue = this.shift(); queue !== undefined; queue = this.shift()) queues.push(queue);
    this.#byQueue.clear();
    return queues;
  }

  /** The priority of the next, among those for whom `may` is true; null when there is none. */
  priority(may: May = anybody): Priority | null {
    return this.#entries.peek(may)?.priority ?? null;
  }

  get size(): number {
    return this.#byQueue.size;
  }
}

/** What a mail host replied to one probe, or why it did not. */
export interface ProbeResult extends SmtpProbeResult {
  readonly connection: "new" | "reused" | "none";
  readonly tls: boolean;
  /** The opening of the session and the lines of this probe only. */
  readonly transcript: readonly SmtpTranscriptLine[];
  /** Wall time at which the host was dialled, or probed on an open connection. */
  readonly startedAtMs: number;
  /** From then until the last reply; waiting in queues is not included. */
  readonly tookMs: number;
  /** The host was not dialled: it has been on cooldown since this wall time, because it kept timing out. */
  readonly cooldownSinceMs?: number;
}

/** An open session, with what the pool must know about it. */
export interface Connection {
  readonly session: SmtpSession;
  /** Monotonic. */
  readonly openedMs: number;
  /** Recipients probed so far. */
  recipients: number;
}

export interface RunOptions {
  /** An idle connection to the host; null where there is none. */
  readonly idle: Connection | null;
  readonly open: () => Promise<Result<SmtpSession, SmtpFailure>>;
  /** Called when the probe has ended, however it did. */
  readonly ended: () => void;
}

interface ProbeRun {
  readonly result: ProbeResult;
  /** The connection that was used, whether reusable or not; null when none was opened. The caller closes it. */
  readonly connection: Connection | null;
}

/**
 * Runs one probe on an idle connection or a new one. A probe that an idle connection leaves open, because it ended or has
 * served enough, is repeated once on a new one. Rejects only for a bug, with nothing left open.
 */
export const runProbe = async (clock: Clock, probe: SmtpProbe, options: RunOptions): Promise<ProbeRun> => {
  const { idle, open, ended } = options;
  const timer: ProbeTimer = { clock, startedAtMs: clock.nowMs(), startedMs: clock.monotonicMs() };
  try {
    if (idle !== null) {
      const run = await runOn(idle, probe, { how: "reused", timer });
      if (!isStale(run.result)) return run;
      idle.session.close();
    }
    const session = await open();
    if (!session.ok) return { result: { ...notConnected(probe, session.error), ...timingOf(timer) }, connection: null };
    const connection = { session: session.value, openedMs: clock.monotonicMs(), recipients: 0 };
    return await runOn(connection, probe, { how: "new", timer });
  } finally {
    ended();
  }
};

/** When a probe began. */
interface ProbeTimer {
  readonly clock: Clock;
  readonly startedAtMs: number;
  readonly startedMs: number;
}

const timingOf = ({ clock, startedAtMs, startedMs }: ProbeTimer) => ({
  startedAtMs,
  tookMs: clock.monotonicMs() - startedMs,
});

const runOn = async (
  connection: Connection,
  probe: SmtpProbe,
  { how, timer }: { readonly how: "new" | "reused"; readonly timer: ProbeTimer },
): Promise<ProbeRun> => {
  const replies = await probeOrClose(connection, probe);
  const { tls, transcript } = connection.session;
  return { result: { ...replies, connection: how, tls, transcript, ...timingOf(timer) }, connection };
};

const probeOrClose = async (connection: Connection, probe: SmtpProbe): Promise<SmtpProbeResult> => {
  connection.recipients += probe.recipients.length;
  try {
    return await connection.session.probe(probe);
  } catch (error) {
    connection.session.close();
    throw error;
  }
};

/**
 * A result of a reused connection that is about the connection only: it ended while it was idle, did not reply or ran out of time,
 * or the server that accepted this sender before now refuses it or replies 421, as servers do that limit what one connection may
 * send. None of that is about the recipient.
 */
const isStale = ({ mail, rcpts, failure }: SmtpProbeResult): boolean => {
  if (rcpts.some((reply) => reply !== null && reply.code !== 421)) return false;
  if (mail !== null && isRefused(mail)) return true;
  if (rcpts.some((reply) => reply !== null)) return true;
  if (failure === null) return false;
  if (mail === null) return failure.kind !== "smtputf8_not_offered";
  return failure.kind === "closed" || failure.kind === "deadline";
};

const notConnected = (probe: SmtpProbe, failure: SmtpFailure) => ({
  mail: null,
  rcpts: probe.recipients.map(() => null),
  failure,
  connection: "none" as const,
  tls: false,
  transcript: failure.transcript,
});

/** The result for a host on cooldown, which is not dialled. */
export const cooldownResult = (
  probe: SmtpProbe,
  { failure, sinceMs }: { readonly failure: SmtpFailure; readonly sinceMs: number },
  nowMs: number,
): ProbeResult => ({ ...notConnected(probe, failure), startedAtMs: nowMs, tookMs: 0, cooldownSinceMs: sinceMs });

/** The host did not accept the connection, or accepted it and sent nothing. */
export const isUnresponsive = (failure: SmtpFailure | null): failure is SmtpFailure =>
  failure !== null && (failure.kind === "connect_timeout" || (failure.kind === "timeout" && !failure.receivedAnything));

/** A 421 instead of the banner. While other connections of ours to the host are open, it means that they are too many. */
export const isConnectionLimit = (failure: SmtpFailure | null): boolean =>
  failure?.stage === "banner" && failure.reply?.code === 421;
