import { createFairQueue, type FairQueue } from "../base/fair-queue.ts";
import type { OnBehalfOf, Priority } from "../base/on-behalf-of.ts";
import type { SmtpProbe } from "../net/smtp-session.ts";
import type { Connection, ProbeResult } from "./smtp-probe.ts";

/** One address of a mail host, and the way there. */
export interface ProbeTarget {
  readonly host: string;
  readonly address: string;
  readonly port: number;
  /** Name of the egress from which it is dialled. */
  readonly egress: string;
  /** Whose host it is: hosts of one provider share a ceiling. */
  readonly provider: string;
}

/** A question, and who waits for its answer. */
export interface QueuedProbe {
  readonly question: SmtpProbe;
  readonly onBehalfOf: OnBehalfOf;
  readonly resolve: (answer: ProbeResult) => void;
  readonly reject: (error: unknown) => void;
  /** How often it was put back because the host had too many connections of ours. */
  returns: number;
}

/** Everything about one address of one mail host by one exit: who waits for it, how many talk to it, which connections rest. */
export interface HostQueue {
  readonly key: string;
  readonly target: ProbeTarget;
  readonly jobs: FairQueue<QueuedProbe>;
  waiting: number;
  talking: number;
  readonly idle: Array<{ readonly connection: Connection; readonly cancel: () => void }>;
  /** Set while the lane pauses before it may dial again. */
  pause: (() => void) | null;
}

/** What identifies a lane: hosts that share an address share its ceiling. */
export const hostKey = ({ address, port, egress }: ProbeTarget): string => `${address} ${port} ${egress}`;

/** A lane in which nothing goes on. */
export const createHostQueue = (target: ProbeTarget): HostQueue => ({
  key: hostKey(target),
  target,
  jobs: createFairQueue<QueuedProbe>(),
  waiting: 0,
  talking: 0,
  idle: [],
  pause: null,
});

/** Jobs that wait for their turn. */
export const probesWaiting = ({ waiting }: HostQueue): number => waiting;

/** Puts a job at the end of those of its account and priority. */
export const addProbe = (lane: HostQueue, job: QueuedProbe): void => {
  lane.waiting++;
  lane.jobs.add(job.onBehalfOf, job);
};

/** Puts a job back where it was taken from: at the front. */
export const returnProbe = (lane: HostQueue, job: QueuedProbe): void => {
  lane.waiting++;
  lane.jobs.addFirst(job.onBehalfOf, job);
};

/** What the lane's next question is worth. */
export const priorityOf = (lane: HostQueue): Priority => lane.jobs.peek()?.priority ?? "bulk";

/** The next job of those for whom `may` says yes: those first that somebody waits for, the accounts in turn. */
export const takeProbe = (lane: HostQueue, may?: (who: OnBehalfOf) => boolean): QueuedProbe | undefined => {
  const taken = lane.jobs.take(may);
  if (taken !== undefined) lane.waiting--;
  return taken?.item;
};

/** Empties the lane of its jobs. */
export const takeAllProbes = (lane: HostQueue): QueuedProbe[] => {
  const jobs: QueuedProbe[] = [];
  for (let job = takeProbe(lane); job !== undefined; job = takeProbe(lane)) jobs.push(job);
  return jobs;
};

/** Nothing is left of it that anybody would miss. */
export const isRemovable = (lane: HostQueue): boolean =>
  probesWaiting(lane) === 0 && lane.talking === 0 && lane.idle.length === 0 && lane.pause === null;
