import type { Clock } from "../base/clock.ts";
import type { Result } from "../base/errors.ts";
import type { SmtpFailure } from "../net/smtp-failure.ts";
import type { Question, SmtpSession } from "../net/smtp-session.ts";
import { type CeilingDeps, createCeilings } from "./ceilings.ts";
import { type Connection, holdDialogue, type ProbeAnswer, unopened } from "./dialogue.ts";
import {
  addJob,
  createLane,
  isForgettable,
  type Job,
  jobsWaiting,
  type Lane,
  laneKey,
  type Priority,
  type ProbeTarget,
  returnJob,
  takeAllJobs,
  takeJob,
} from "./lane.ts";
import type { Pacing } from "./pacing.ts";
import { createLaneQueue } from "./queue.ts";

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
  ask(target: ProbeTarget, question: Question, priority?: Priority): Promise<ProbeAnswer>;
  /** The host said that we come too often, or (again) not. */
  notePace(target: ProbeTarget, kind: "rate_limited" | "answered"): void;
  /** Dialogues that are open or being opened. */
  connections(): number;
  /** Questions that wait for their turn. */
  waiting(): number;
  /** Closes idle connections, refuses new questions, and resolves when the last dialogue is over. */
  drain(): Promise<void>;
}

/** A connection with nothing to ask stays open this long: the next recipient of the host then costs one round trip. */
export const IDLE_MS = 1_000;
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
 * The dialogues with mail hosts: at most `connectionsMax` at a time in all, `connectionsPerHostMax` for an address, and
 * what is known to be tolerable for a provider. A connection serves several recipients, up to `rcptPerConnectionMax`.
 */
export const createProbePool = (deps: PoolDeps): ProbePool => {
  const { clock, open, pacing, connectionsPerHostMax, rcptPerConnectionMax } = deps;
  const ceilings = createCeilings(deps);
  const lanes = new Map<string, Lane>();
  /** Lanes that wait for any connection to become free. No connection rests meanwhile. */
  const hungry = createLaneQueue();
  /** Lanes with resting connections; the one that has had them longest comes first. */
  const idleLanes = new Set<Lane>();
  const drained: Array<() => void> = [];
  let waiting = 0;
  let draining = false;

  const laneOf = (target: ProbeTarget): Lane => {
    const key = laneKey(target);
    const lane = lanes.get(key) ?? createLane(target);
    lanes.set(key, lane);
    return lane;
  };

  const forget = (lane: Lane): void => {
    if (isForgettable(lane)) lanes.delete(lane.key);
  };

  /** One connection less: whoever waits for one gets it, a lane that just had its turn last. */
  const onClosed = (lane: Lane): void => {
    for (const other of ceilings.give(lane)) hungry.add(other);
    hungry.delete(lane);
    if (jobsWaiting(lane) > 0) hungry.add(lane);
    else forget(lane);
    for (let looks = hungry.size(); looks > 0 && !ceilings.isFull(); looks--) {
      const next = hungry.shift();
      if (next !== undefined) feed(next);
    }
    if (ceilings.total() === 0) for (const resolve of drained.splice(0)) resolve();
  };

  /** The connection that rested last: it is the least likely to have been closed by the other side. */
  const takeIdle = (lane: Lane): Connection | null => {
    const idle = lane.idle.pop();
    if (lane.idle.length === 0) idleLanes.delete(lane);
    idle?.cancel();
    return idle?.connection ?? null;
  };

  const closeOldestIdle = (lane: Lane): void => {
    const idle = lane.idle.shift();
    if (lane.idle.length === 0) idleLanes.delete(lane);
    if (idle === undefined) return;
    idle.cancel();
    idle.connection.session.close();
    onClosed(lane);
  };

  /** Gives up a resting connection, so that another host can be dialled. */
  const makeRoom = (): void => {
    const [lane] = idleLanes;
    if (lane !== undefined) closeOldestIdle(lane);
  };

  /** Every connection rests equally long, so that the timer which fires is the oldest one's. */
  const rest = (lane: Lane, connection: Connection): void => {
    lane.idle.push({ connection, cancel: clock.after(IDLE_MS, () => closeOldestIdle(lane)) });
    idleLanes.add(lane);
  };

  const mayServeOn = ({ session, recipients, openedMs }: Connection, { recipients: next }: Question): boolean => {
    if (!session.usable || recipients + next.length > rcptPerConnectionMax) return false;
    return hungry.size() === 0 || clock.monotonicMs() - openedMs < TURN_MS;
  };

  /** Answers one job. `end` tells the asker; `connection` is there if it may be used again. */
  const serve = async (lane: Lane, job: Job, standing: Connection | null): Promise<Served> => {
    const { question, resolve, reject } = job;
    try {
      const held = await holdDialogue(clock, question, { standing, open: () => open(lane.target) });
      const { answer, connection } = held;
      if (isSilence(answer.failure)) pacing.note(lane.key, { kind: "silent", failure: answer.failure });
      if (isOurCrowd(answer.failure, lane) && job.returns < RETURNS_MAX && !draining) {
        pacing.note(lane.key, { kind: "rate_limited" });
        job.returns++;
        waiting++;
        returnJob(lane, job);
        return { connection: null, end: nothing };
      }
      const end = () => resolve(answer);
      if (connection !== null && mayServeOn(connection, question)) return { connection, end };
      connection?.session.close();
      return { connection: null, end };
    } catch (error) {
      return { connection: null, end: () => reject(error) };
    }
  };

  /** The asker hears last: a further question of his finds the connection resting. */
  const work = async (lane: Lane, job: Job, standing: Connection | null): Promise<void> => {
    waiting--;
    const { connection, end } = await serve(lane, job, standing);
    const next = connection === null ? undefined : takeJob(lane);
    if (next === undefined) release(lane, connection);
    else void work(lane, next, connection);
    end();
  };

  const release = (lane: Lane, connection: Connection | null): void => {
    lane.talking--;
    if (connection !== null && !draining && hungry.size() === 0) {
      rest(lane, connection);
      return;
    }
    connection?.session.close();
    onClosed(lane);
  };

  /** How many connections the lane may have now; none while it pauses, or rests and has answered its jobs from memory. */
  const admitted = (lane: Lane): number => {
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
        for (const { question, resolve } of takeAllJobs(lane)) {
          waiting--;
          resolve({
            ...unopened(question, admission.failure),
            startedAtMs: clock.nowMs(),
            tookMs: 0,
            rememberedSinceMs: admission.sinceMs,
          });
        }
        forget(lane);
        return 0;
      default:
        return admission satisfies never;
    }
  };

  /** Sets the lane's questions going, as far as the ceilings allow. */
  const feed = (lane: Lane): void => {
    while (jobsWaiting(lane) > 0) {
      const idle = takeIdle(lane);
      if (idle === null) {
        if (lane.talking >= admitted(lane) || jobsWaiting(lane) === 0) return;
        if (ceilings.isFull(lane)) makeRoom();
        const room = ceilings.take(lane);
        if (room === "all") hungry.add(lane);
        if (room !== "taken") return;
      }
      const job = takeJob(lane);
      if (job === undefined) return;
      lane.talking++;
      void work(lane, job, idle);
    }
  };

  return {
    ask: (target, question, priority = "realtime") =>
      new Promise((resolve, reject) => {
        if (draining) return reject(new PoolClosed());
        const lane = laneOf(target);
        addJob(lane, { question, priority, resolve, reject, returns: 0 });
        waiting++;
        feed(lane);
      }),
    notePace: (target, kind) => pacing.note(laneKey(target), { kind }),
    connections: () => ceilings.total(),
    waiting: () => waiting,
    drain() {
      draining = true;
      hungry.clear();
      for (const lane of lanes.values()) {
        lane.pause?.();
        lane.pause = null;
        for (const job of takeAllJobs(lane)) {
          waiting--;
          job.reject(new PoolClosed());
        }
      }
      while (idleLanes.size > 0) makeRoom();
      return ceilings.total() === 0 ? Promise.resolve() : new Promise((resolve) => drained.push(resolve));
    },
  };
};

const nothing = (): undefined => undefined;

/** The host did not take the connect, or took it and never said a word. */
const isSilence = (failure: SmtpFailure | null): failure is SmtpFailure =>
  failure !== null && (failure.kind === "connect_timeout" || (failure.kind === "timeout" && !failure.heardAnything));

/** A 421 at the door while other connections of ours to the same host are open: we are the crowd. */
const isOurCrowd = (failure: SmtpFailure | null, lane: Lane): boolean =>
  failure?.stage === "banner" && failure.reply?.code === 421 && lane.talking > 1;
