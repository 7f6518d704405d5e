import type { AttentionItem } from "../foundation/base/attention.ts";
import { DAY_MS } from "../foundation/base/days.ts";
import type { PausedReason } from "../verify/smtp/outages.ts";
import type { Draft } from "./arrival/drafts.ts";
import type { JobRow } from "./results/job-store.ts";

/** Only the newest failed lists are shown, until this time after their end. */
const FAILED_MS_MAX = 7 * DAY_MS;
const FAILED_MAX = 5;

/** Why lists are paused, as a sentence. */
export const PAUSED_SENTENCES: Readonly<Record<PausedReason, string>> = {
  local_failure: "This machine cannot open connections.",
  dns_unavailable: "No DNS server responds.",
  smtp_unreachable: "No mail server accepts a connection: outgoing SMTP (port 25) seems to be blocked on this side.",
};

const UNTITLED = "List without a name";

/** The name of a list in texts. */
export const listTitle = (name: string | null): string => (name === null || name.trim() === "" ? UNTITLED : name);

const grouped = (count: number): string => count.toLocaleString("en");

const pathOf = ({ id }: Pick<JobRow, "id">): string => `/lists/${id}`;

/** One outage pauses every live list: it is one item. */
const pausedItem = (jobs: readonly JobRow[], reason: PausedReason): AttentionItem | null => {
  const [first] = jobs;
  if (first === undefined) return null;
  const isAlone = jobs.length === 1;
  return {
    severity: "warn",
    label: "Paused",
    title: isAlone ? `${listTitle(first.name)} is paused` : `${grouped(jobs.length)} lists are paused`,
    detail: `${PAUSED_SENTENCES[reason]} No result is recorded meanwhile; verification resumes automatically.`,
    action: { text: "See why", path: isAlone ? pathOf(first) : "/lists?status=running" },
    sinceMs: null,
  };
};

const failedItem = (job: JobRow): AttentionItem => ({
  severity: "bad",
  label: "Failed",
  title: `${listTitle(job.name)} failed`,
  detail: `An error of this service prevents its completion. ${grouped(job.addressesFinished)} of ${grouped(job.addressesTotal)} addresses have a result; the credits of the others were released.`,
  action: { text: "Show the list", path: pathOf(job) },
  sinceMs: job.completedAtMs,
});

const unaffordable = ({ id, fileName, required }: Draft, available: number): AttentionItem | null =>
  required === null || required <= available
    ? null
    : {
        severity: "warn",
        label: "Credits",
        title: `${fileName ?? "A pasted list"} waits for credits`,
        detail: `It needs ${grouped(required)} credits, ${grouped(available)} are available. The upload is kept for an hour.`,
        action: { text: "Show the list", path: `/lists/new?draft=${id}` },
        sinceMs: null,
      };

interface ListsState {
  readonly nowMs: number;
  /** Jobs that have not ended. */
  readonly unfinished: readonly JobRow[];
  /** The reason why a job is paused. */
  readonly pausedReason: (job: JobRow) => PausedReason | null;
  /** Failed jobs, newest first. */
  readonly failed: readonly JobRow[];
  readonly drafts: readonly Draft[];
  readonly availableCredits: number;
}

/** Open problems of the lists of an account: failed lists, an outage, uploads that cannot be paid for. */
export const attentionOfLists = ({ nowMs, unfinished, pausedReason, ...state }: ListsState): AttentionItem[] => {
  const paused = unfinished.filter((job) => pausedReason(job) !== null);
  const reason = paused[0] === undefined ? null : pausedReason(paused[0]);
  const recent = state.failed.filter(({ completedAtMs }) => (completedAtMs ?? 0) > nowMs - FAILED_MS_MAX);
  return [
    ...recent.slice(0, FAILED_MAX).map(failedItem),
    reason === null ? null : pausedItem(paused, reason),
    ...state.drafts.map((draft) => unaffordable(draft, state.availableCredits)),
  ].filter((item) => item !== null);
};
