import type { Clock } from "../base/clock.ts";
import type { Result } from "../base/errors.ts";
import { type OnBehalfOf, OPERATOR, type Priority } from "../base/on-behalf-of.ts";
import type { SmtpFailure } from "../net/smtp-failure.ts";
import type { SmtpProbe, SmtpSession } from "../net/smtp-session.ts";
import { type CeilingDeps, createCeilings } from "./ceilings.ts";
import {
  type Connection,
  runProbe,
  isConnectionLimit,
  isUnresponsive,
  type ProbeResult,
  cooldownResult,
} from "./smtp-probe.ts";
import { createIdleConnections } from "./idle.ts";
import {
  addProbe,
  createHostQueue,
  isRemovable,
  type QueuedProbe,
  probesWaiting,
  type HostQueue,
  hostKey,
  type ProbeTarget,
  priorityOf,
  returnProbe,
  takeAllProbes,
  takeProbe,
} from "./host-queue.ts";
import type { Pacing } from "./pacing.ts";
import { createWaitingQueue } from "./waiting-queue.ts";

export interface PoolDeps extends CeilingDeps {
  readonly clock: Clock;
  readonly open: (target: ProbeTarget) => Promise<Result<SmtpSession, SmtpFailure>>;
  readonly pacing: Pacing;
  /** For one address and port by one exit, under however many host names. */
  readonly connectionsPerHostMax: number;
  readonly rcptPerConnectionMax: number;
}

export interface ProbePool {
  /** Asks a host, as soon as the ceilings let us. Never rejects for what a server does. */
  probe(target: ProbeTarget, question: SmtpProbe, onBehalfOf?: OnBehalfOf): Promise<ProbeResult>;
  /** The host said that we come too often, or (again) not. */
  notePace(target: ProbeTarget, kind: "rate_limited" | "answered"): void;
  /** Dialogues that are open or being opened. */
  connections(): number;
  /** Questions that wait for their turn. */
  waiting(): number;
  /** Addresses that something goes on at, is waited for, or rests. */
  hosts(): number;
  /** Closes idle connections, refuses new questions, and resolves when the last dialogue is over. */
  drain(): Promise<void>;
}

/** While other hosts wait for a connection, a host with a long queue keeps one no longer than this. */
export const TURN_MS = 5_000;
/** A question is put back so often when the host had too many connections of ours; then its 421 is the answer. */
const RETURNS_MAX = 3;

interface Served {
  readonly connection: Connection | null;
  readonly end: () => void;
}

/** The pool is closing: the question was not asked. */
export class PoolClosed extends Error {}

/**
 * The dialogues with mail hosts: at most `connectionsMax` at a time in all, not all of them for one account,
 * `connectionsPerHostMax` for an address, and what is known to be tolerable for a provider. A connection serves several recipients, up to `rcptPerConnectionMax`.
 */
export const createProbePool = (deps: PoolDeps): ProbePool => {
  const { clock, open, pacing, connectionsPerHostMax, rcptPerConnectionMax } = deps;
  const ceilings = createCeilings(deps);
  const lanes = new Map<string, HostQueue>();
  /** HostQueues that wait for any connection to become free. No connection rests meanwhile. */
  const waitingHosts = createWaitingQueue();
  const drained: Array<() => void> = [];
  let waiting = 0;
  let draining = false;

  const laneOf = (target: ProbeTarget): HostQueue => {
    const key = hostKey(target);
    const lane = lanes.get(key) ?? createHostQueue(target);
    lanes.set(key, lane);
    return lane;
  };

  const forget = (lane: HostQueue): void => {
    if (isRemovable(lane)) lanes.delete(lane.key);
  };

  /** Feeds those that wait for any connection, as far as there are some. */
  const wakeWaiting = (): void => {
    for (let looks = waitingHosts.size(); looks > 0; looks--) {
      const next = waitingHosts.shift(ceilings.mayTake);
      if (next === undefined) return;
      feed(next);
    }
  };

  /** One connection less: whoever waits for one gets it, a lane that just had its turn last. */
  const onClosed = (lane: HostQueue): void => {
    for (const other of ceilings.give(lane)) waitingHosts.add(other);
    waitingHosts.delete(lane);
    if (probesWaiting(lane) > 0) waitingHosts.add(lane);
    else forget(lane);
    wakeWaiting();
    if (ceilings.total() === 0) for (const resolve of drained.splice(0)) resolve();
  };
  const idle = createIdleConnections(clock, onClosed);

  /** The most urgent question of others that waits for a connection such as this lane's, and may have one. */
  const wantedFor = (lane: HostQueue): Priority | null => {
    const waiting = [waitingHosts.priority(ceilings.mayHold), ceilings.awaitedAtProvider(lane)];
    return waiting.includes("realtime") ? "realtime" : (waiting.find((priority) => priority !== null) ?? null);
  };

  const mayServeOn = (
    lane: HostQueue,
    { session, recipients, openedMs }: Connection,
    { recipients: next }: SmtpProbe,
  ) => {
    if (!session.usable || recipients + next.length > rcptPerConnectionMax) return false;
    const wanted = wantedFor(lane);
    if (wanted === "realtime" && priorityOf(lane) === "bulk") return false;
    return wanted === null || clock.monotonicMs() - openedMs < TURN_MS;
  };

  /** Answers one job. `end` tells the asker; `connection` is there if it may be used again. */
  const serve = async (lane: HostQueue, job: QueuedProbe, standing: Connection | null): Promise<Served> => {
    const { question, resolve, reject } = job;
    try {
      const held = await runProbe(clock, question, { standing, open: () => open(lane.target) }).finally(() =>
        ceilings.release(job.onBehalfOf),
      );
      const { answer, connection } = held;
      if (isUnresponsive(answer.failure)) pacing.note(lane.key, { kind: "silent", failure: answer.failure });
      if (isConnectionLimit(answer.failure) && lane.talking > 1 && job.returns < RETURNS_MAX && !draining) {
        pacing.note(lane.key, { kind: "rate_limited" });
        job.returns++;
        waiting++;
        returnProbe(lane, job);
        return { connection: null, end: () => undefined };
      }
      const end = () => resolve(answer);
      if (connection !== null && mayServeOn(lane, connection, question)) return { connection, end };
      connection?.session.close();
      return { connection: null, end };
    } catch (error) {
      return { connection: null, end: () => reject(error) };
    }
  };

  /** The asker hears last: a further question of his finds the connection resting. */
  const work = async (lane: HostQueue, job: QueuedProbe, standing: Connection | null): Promise<void> => {
    waiting--;
    ceilings.hold(job.onBehalfOf);
    const { connection, end } = await serve(lane, job, standing);
    const next = connection === null ? undefined : takeProbe(lane, ceilings.mayHold);
    if (next === undefined) release(lane, connection);
    else {
      void work(lane, next, connection);
      // Where the connection went over to another account, this one may open another.
      if (next.onBehalfOf !== job.onBehalfOf) wakeWaiting();
    }
    end();
  };

  const release = (lane: HostQueue, connection: Connection | null): void => {
    lane.talking--;
    if (connection !== null && !draining && probesWaiting(lane) === 0 && wantedFor(lane) === null) {
      idle.rest(lane, connection);
      return;
    }
    connection?.session.close();
    onClosed(lane);
  };

  /** How many connections the lane may have now; none while it pauses, or rests and has answered its jobs from memory. */
  const admitted = (lane: HostQueue): number => {
    const admission = pacing.admit(lane.key);
    switch (admission.kind) {
      case "go":
        return Math.min(connectionsPerHostMax, admission.connectionsMax);
      case "wait":
        lane.pause ??= clock.after(admission.waitMs, () => {
          lane.pause = null;
          feed(lane);
          forget(lane);
        });
        return 0;
      case "resting":
        for (const { question, resolve } of takeAllProbes(lane)) {
          waiting--;
          resolve(cooldownResult(question, admission, clock.nowMs()));
        }
        forget(lane);
        return 0;
      default:
        return admission satisfies never;
    }
  };

  /** Takes a question, and a connection that rests or the right to open one; undefined when the lane has to wait. */
  const takeWork = (
    lane: HostQueue,
  ): { readonly job: QueuedProbe; readonly standing: Connection | null } | undefined => {
    while (probesWaiting(lane) > 0) {
      if (lane.idle.length > 0) {
        const job = takeProbe(lane, ceilings.mayHold);
        if (job !== undefined) return { job, standing: idle.take(lane) };
      }
      if (lane.talking >= admitted(lane) || probesWaiting(lane) === 0) return undefined;
      const job = ceilings.take(lane);
      if (typeof job === "object") return { job, standing: null };
      // Who waited longer may be quicker to take what is closed here: everything is looked at again.
      if (job !== "share" && idle.closeOne(job === "provider" ? lane.target.provider : null)) continue;
      if (job === "provider") ceilings.awaitProvider(lane);
      else waitingHosts.add(lane);
      return undefined;
    }
    return undefined;
  };

  /** Sets the lane's questions going, as far as the ceilings allow. */
  const feed = (lane: HostQueue): void => {
    for (let next = takeWork(lane); next !== undefined; next = takeWork(lane)) {
      lane.talking++;
      void work(lane, next.job, next.standing);
    }
  };

  return {
    probe: (target, question, onBehalfOf = OPERATOR) =>
      new Promise((resolve, reject) => {
        if (draining) return reject(new PoolClosed());
        const lane = laneOf(target);
        addProbe(lane, { question, onBehalfOf, resolve, reject, returns: 0 });
        waiting++;
        feed(lane);
      }),
    notePace(target, kind) {
      const lane = lanes.get(hostKey(target));
      pacing.note(hostKey(target), { kind });
      // It may bear another connection by now.
      if (lane !== undefined) feed(lane);
    },
    connections: () => ceilings.total(),
    waiting: () => waiting,
    hosts: () => lanes.size,
    drain() {
      draining = true;
      waitingHosts.takeAll();
      for (const lane of lanes.values()) {
        lane.pause?.();
        lane.pause = null;
        for (const job of takeAllProbes(lane)) {
          waiting--;
          job.reject(new PoolClosed());
        }
      }
      idle.closeAll();
      return ceilings.total() === 0 ? Promise.resolve() : new Promise((resolve) => drained.push(resolve));
    },
  };
};
