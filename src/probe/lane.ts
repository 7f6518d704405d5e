import type { Question } from "../net/smtp-session.ts";
import type { Connection, ProbeAnswer } from "./dialogue.ts";

/** One address of a mail host, and the way there. */
export interface ProbeTarget {
  readonly host: string;
  readonly address: string;
  readonly port: number;
  /** Name of the exit by which it is dialled. */
  readonly exit: string;
  /** Whose host it is: hosts of one provider share a ceiling. */
  readonly provider: string;
}

/** `realtime`: somebody waits for the answer; such questions go before all others. */
export type Priority = "realtime" | "bulk";

/** A question, and who waits for its answer. */
export interface Job {
  readonly question: Question;
  readonly priority: Priority;
  readonly resolve: (answer: ProbeAnswer) => void;
  readonly reject: (error: unknown) => void;
  /** How often it was put back because the host had too many connections of ours. */
  returns: number;
}

/** Everything about one address of one mail host by one exit: who waits for it, how many talk to it, which connections rest. */
export interface Lane {
  readonly key: string;
  readonly target: ProbeTarget;
  readonly realtime: Job[];
  readonly bulk: Job[];
  talking: number;
  readonly idle: Array<{ readonly connection: Connection; readonly cancel: () => void }>;
  /** Set while the lane pauses before it may dial again. */
  pause: (() => void) | null;
}

/** What identifies a lane: hosts that share an address share its ceiling. */
export const laneKey = ({ address, port, exit }: ProbeTarget): string => `${address} ${port} ${exit}`;

/** A lane in which nothing goes on. */
export const createLane = (target: ProbeTarget): Lane => ({
  key: laneKey(target),
  target,
  realtime: [],
  bulk: [],
  talking: 0,
  idle: [],
  pause: null,
});

/** Jobs that wait for their turn. */
export const jobsWaiting = ({ realtime, bulk }: Lane): number => realtime.length + bulk.length;

/** Puts a job at the end of those of its priority. */
export const addJob = (lane: Lane, job: Job): void =>
  void (job.priority === "realtime" ? lane.realtime : lane.bulk).push(job);

/** Puts a job back where it was taken from: at the front. */
export const returnJob = (lane: Lane, job: Job): void =>
  void (job.priority === "realtime" ? lane.realtime : lane.bulk).unshift(job);

/** What the lane's next question is worth. */
export const priorityOf = (lane: Lane): Priority => (lane.realtime.length > 0 ? "realtime" : "bulk");

/** The next job, those first that somebody waits for. */
export const takeJob = (lane: Lane): Job | undefined => lane.realtime.shift() ?? lane.bulk.shift();

/** Empties the lane of its jobs. */
export const takeAllJobs = (lane: Lane): Job[] => [...lane.realtime.splice(0), ...lane.bulk.splice(0)];

/** Nothing is left of it that anybody would miss. */
export const isForgettable = (lane: Lane): boolean =>
  jobsWaiting(lane) === 0 && lane.talking === 0 && lane.idle.length === 0 && lane.pause === null;
