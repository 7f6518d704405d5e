import type { Clock } from "../base/clock.ts";
import { ok, type Result } from "../base/errors.ts";
import type { SmtpDialogueLine } from "../net/smtp-dialogue.ts";
import type { SmtpFailure } from "../net/smtp-failure.ts";
import type { Answer, Question, SmtpSession } from "../net/smtp-session.ts";

/** One address of a mail host. */
export interface ProbeTarget {
  readonly host: string;
  readonly address: string;
  readonly port: number;
}

/** What a mail host said to one question, or why it said nothing. */
export interface ProbeAnswer extends Answer {
  readonly connection: "new" | "reused" | "none";
  readonly tls: boolean;
  /** The session's opening and this question's lines, nobody else's. */
  readonly transcript: readonly SmtpDialogueLine[];
  /** Wall time at which the host was dialled, or asked over a connection that stood. */
  readonly startedAtMs: number;
}

export interface PoolDeps {
  readonly clock: Clock;
  readonly open: (target: ProbeTarget) => Promise<Result<SmtpSession, SmtpFailure>>;
  readonly connectionsMax: number;
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
const IDLE_MS = 1_000;

interface Job {
  readonly question: Question;
  readonly resolve: (answer: ProbeAnswer) => void;
  readonly reject: (error: unknown) => void;
}

interface Connection {
  readonly session: SmtpSession;
  recipients: number;
}

interface Connection {
  readonly session: SmtpSession;
  recipients: number;
}

/** Everything about one address of one mail host: who waits for it, how many talk to it, which connections rest. */
interface Lane {
  readonly key: string;
  readonly target: ProbeTarget;
  readonly jobs: Job[];
  talking: number;
  readonly idle: Array<{ readonly connection: Connection; readonly cancel: () => void }>;
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
  /** Lanes that could use a connection while all are taken, in the order they came. */
  const hungry = new Set<Lane>();
  const idleLanes = new Set<Lane>();
  let total = 0;
  let waiting = 0;
  let draining = false;
  let drained: (() => void) | null = null;

  const laneOf = (target: ProbeTarget): Lane => {
    const key = `${target.address} ${target.port} ${target.host}`;
    const lane = lanes.get(key) ?? { key, target, jobs: [], talking: 0, idle: [] };
    lanes.set(key, lane);
    return lane;
  };

  /** One connection less: the next lane that waits for one gets its turn. */
  const onClosed = (lane: Lane): void => {
    total--;
    if (lane.jobs.length === 0 && lane.talking === 0 && lane.idle.length === 0) lanes.delete(lane.key);
    if (total === 0) drained?.();
    const [next] = hungry;
    if (next === undefined) return;
    hungry.delete(next);
    feed(next);
  };

  const takeIdle = (lane: Lane, at: number): Connection | null => {
    if (at < 0) return null;
    const [idle] = lane.idle.splice(at, 1);
    if (lane.idle.length === 0) idleLanes.delete(lane);
    idle?.cancel();
    return idle?.connection ?? null;
  };

  const closeIdle = (lane: Lane, connection: Connection): void => {
    takeIdle(
      lane,
      lane.idle.findIndex((idle) => idle.connection === connection),
    )?.session.close();
    onClosed(lane);
  };

  /** Gives up the connection that has rested longest, so that another host can be dialled. */
  const makeRoom = (): void => {
    const [lane] = idleLanes;
    const idle = lane?.idle[0];
    if (lane !== undefined && idle !== undefined) closeIdle(lane, idle.connection);
  };

  const rest = (lane: Lane, connection: Connection): void => {
    const cancel = clock.after(IDLE_MS, () => closeIdle(lane, connection));
    lane.idle.push({ connection, cancel });
    idleLanes.add(lane);
    if (lane.jobs.length > 0) feed(lane);
    else if (hungry.size > 0) closeIdle(lane, connection);
  };

  const connect = async (lane: Lane): Promise<Result<Connection, SmtpFailure>> => {
    const session = await open(lane.target);
    return session.ok ? ok({ session: session.value, recipients: 0 }) : session;
  };

  /** Answers one job over a standing connection or a new one; the answer is the connection if it may be used again. */
  const answer = async (lane: Lane, job: Job, standing: Connection | null): Promise<Connection | null> => {
    const startedAtMs = clock.nowMs();
    if (standing !== null) {
      const said = await standing.session.ask(job.question);
      if (!isStale(said)) return finish(job, standing, { said, how: "reused", startedAtMs });
      standing.session.close();
    }
    const fresh = await connect(lane);
    if (!fresh.ok) {
      job.resolve(unopened(job.question, fresh.error, startedAtMs));
      return null;
    }
    const said = await fresh.value.session.ask(job.question);
    return finish(job, fresh.value, { said, how: "new", startedAtMs });
  };

  const finish = (
    job: Job,
    connection: Connection,
    { said, how, startedAtMs }: { said: Answer; how: "new" | "reused"; startedAtMs: number },
  ): Connection | null => {
    const { session } = connection;
    job.resolve({ ...said, connection: how, tls: session.tls, transcript: session.transcript, startedAtMs });
    connection.recipients += job.question.recipients.length;
    const room = rcptPerConnectionMax - connection.recipients;
    if (session.usable && room >= job.question.recipients.length) return connection;
    session.close();
    return null;
  };

  const work = async (lane: Lane, standing: Connection | null): Promise<void> => {
    let connection = standing;
    for (let job = lane.jobs.shift(); job !== undefined; job = lane.jobs.shift()) {
      waiting--;
      try {
        connection = await answer(lane, job, connection);
      } catch (error) {
        job.reject(error);
        connection?.session.close();
        connection = null;
      }
      if (connection === null) break;
    }
    lane.talking--;
    if (connection !== null && !draining) return rest(lane, connection);
    connection?.session.close();
    onClosed(lane);
    feed(lane);
  };

  /** Sets the lane's questions going, as far as the ceilings allow. */
  const feed = (lane: Lane): void => {
    while (lane.jobs.length > 0) {
      const idle = takeIdle(lane, lane.idle.length - 1);
      if (idle === null) {
        if (lane.talking >= connectionsPerHostMax) return;
        if (total >= connectionsMax) makeRoom();
        if (total >= connectionsMax) return void hungry.add(lane);
        total++;
      }
      lane.talking++;
      void work(lane, idle);
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
      for (const lane of lanes.values()) {
        waiting -= lane.jobs.length;
        for (const job of lane.jobs.splice(0)) job.reject(new PoolClosed());
      }
      while (idleLanes.size > 0) makeRoom();
      return total === 0 ? Promise.resolve() : new Promise((resolve) => (drained = resolve));
    },
  };
};

/** A connection that ended while it rested says nothing about the question: it is asked again on a new one. */
const isStale = ({ mail, failure }: Answer): boolean =>
  mail === null && failure !== null && (failure.kind === "closed" || failure.stage === "rset");

const unopened = (question: Question, failure: SmtpFailure, startedAtMs: number): ProbeAnswer => ({
  mail: null,
  rcpts: question.recipients.map(() => null),
  failure,
  connection: "none",
  tls: false,
  transcript: failure.transcript,
  startedAtMs,
});
