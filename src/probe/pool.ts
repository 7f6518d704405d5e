import type { Clock } from "../base/clock.ts";
import type { Result } from "../base/errors.ts";
import type { SmtpFailure } from "../net/smtp-failure.ts";
import type { Question, SmtpSession } from "../net/smtp-session.ts";
import { type Connection, holdDialogue, type ProbeAnswer } from "./dialogue.ts";

/** One address of a mail host. */
export interface ProbeTarget {
  readonly host: string;
  readonly address: string;
  readonly port: number;
}

export interface PoolDeps {
  readonly clock: Clock;
  readonly open: (target: ProbeTarget) => Promise<Result<SmtpSession, SmtpFailure>>;
  readonly connectionsMax: number;
  /** For one address and port, under however many host names. */
  readonly connectionsPerHostMax: number;
  readonly rcptPerConnectionMax: number;
}

export interface ProbePool {
  /** Asks a host, as soon as the ceilings let us. Never rejects for what a server does. */
  ask(target: ProbeTarget, question: Question): Promise<ProbeAnswer>;
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

interface Job {
  readonly question: Question;
  readonly resolve: (answer: ProbeAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** Everything about one address of one mail host: who waits for it, how many talk to it, which connections rest. */
interface Lane {
  readonly key: string;
  readonly target: ProbeTarget;
  readonly jobs: Job[];
  talking: number;
  readonly idle: Array<{ readonly connection: Connection; readonly cancel: () => void }>;
}

interface Served {
  readonly connection: Connection | null;
  readonly end: () => void;
}

/** The pool is closing: the question was not asked. */
export class PoolClosed extends Error {}

/**
 * The dialogues with mail hosts: at most `connectionsMax` at a time in all and `connectionsPerHostMax` for an address.
 * A connection serves several recipients, up to `rcptPerConnectionMax`, while there are questions for its host.
 */
export const createProbePool = (deps: PoolDeps): ProbePool => {
  const { clock, open, connectionsMax, connectionsPerHostMax, rcptPerConnectionMax } = deps;
  const lanes = new Map<string, Lane>();
  /** Lanes that could use a connection while all are taken, in the order they came. No connection rests meanwhile. */
  const hungry = new Set<Lane>();
  /** Lanes with resting connections; the one that has had them longest comes first. */
  const idleLanes = new Set<Lane>();
  const drained: Array<() => void> = [];
  let total = 0;
  let waiting = 0;
  let draining = false;

  const laneOf = (target: ProbeTarget): Lane => {
    const key = `${target.address} ${target.port}`;
    const lane = lanes.get(key) ?? { key, target, jobs: [], talking: 0, idle: [] };
    lanes.set(key, lane);
    return lane;
  };

  /** One connection less: whoever waits for one gets it, a lane that just had its turn last. */
  const onClosed = (lane: Lane): void => {
    total--;
    hungry.delete(lane);
    if (lane.jobs.length > 0) hungry.add(lane);
    else if (lane.talking === 0 && lane.idle.length === 0) lanes.delete(lane.key);
    for (const next of hungry) {
      if (total >= connectionsMax) break;
      hungry.delete(next);
      feed(next);
    }
    if (total === 0) for (const resolve of drained.splice(0)) resolve();
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
    return hungry.size === 0 || clock.monotonicMs() - openedMs < TURN_MS;
  };

  /** Answers one job. `end` tells the asker; `connection` is there if it may be used again. */
  const serve = async (
    lane: Lane,
    { question, resolve, reject }: Job,
    standing: Connection | null,
  ): Promise<Served> => {
    try {
      const { answer, connection } = await holdDialogue(clock, question, { standing, open: () => open(lane.target) });
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
    const next = connection === null ? undefined : lane.jobs.shift();
    if (next === undefined) release(lane, connection);
    else void work(lane, next, connection);
    end();
  };

  const release = (lane: Lane, connection: Connection | null): void => {
    lane.talking--;
    if (connection !== null && !draining && hungry.size === 0) {
      rest(lane, connection);
      return;
    }
    connection?.session.close();
    onClosed(lane);
  };

  /** Sets the lane's questions going, as far as the ceilings allow. */
  const feed = (lane: Lane): void => {
    while (lane.jobs.length > 0 && lane.talking < connectionsPerHostMax) {
      const idle = takeIdle(lane);
      if (idle === null && total >= connectionsMax) makeRoom();
      if (idle === null && total >= connectionsMax) return void hungry.add(lane);
      const job = lane.jobs.shift();
      if (job === undefined) return;
      if (idle === null) total++;
      lane.talking++;
      void work(lane, job, idle);
    }
  };

  return {
    ask: (target, question) =>
      new Promise((resolve, reject) => {
        if (draining) return reject(new PoolClosed());
        const lane = laneOf(target);
        lane.jobs.push({ question, resolve, reject });
        waiting++;
        feed(lane);
      }),
    connections: () => total,
    waiting: () => waiting,
    drain() {
      draining = true;
      hungry.clear();
      for (const lane of lanes.values()) {
        waiting -= lane.jobs.length;
        for (const job of lane.jobs.splice(0)) job.reject(new PoolClosed());
      }
      while (idleLanes.size > 0) makeRoom();
      return total === 0 ? Promise.resolve() : new Promise((resolve) => drained.push(resolve));
    },
  };
};
