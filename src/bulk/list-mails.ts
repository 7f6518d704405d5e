import { MailBatcher, type Mailing, type MailRuntime } from "../notifications/mail/mail-batcher.ts";
import {
  formatCount,
  line,
  list,
  type MailContent,
  type MailSection,
  pageLink,
  plural,
  shortName,
} from "../notifications/mail/mail-content.ts";
import { listTitle } from "./attention.ts";
import { countGroups, GROUP_LABELS, ROW_GROUPS } from "./job-queries.ts";
import type { JobRow, JobStore } from "./results/job-store.ts";
import { ListMailStore, type QueuedListMail } from "./results/list-mail-store.ts";

/** One mail to a recipient in this time, about all lists that ended meanwhile. */
const INTERVAL_MS = 5 * 60_000;

/** Mails that lists have ended to those who want to know. */
export const createListMails = (
  runtime: MailRuntime,
  { mailing, jobs }: { readonly mailing: Mailing; readonly jobs: JobStore },
): MailBatcher<QueuedListMail> =>
  new MailBatcher(runtime, {
    name: "mail about lists",
    queue: new ListMailStore(runtime.db),
    mailing,
    compose: (rows) => mailAbout(jobs, rows),
    topicOf: ({ accountId }) => ({ accountId, kind: "lists" }),
    gatherMs: 0,
    intervalMs: INTERVAL_MS,
  });

/** Null when the lists were deleted, or are verified again already: their next end is mailed. */
const mailAbout = (jobs: JobStore, rows: readonly QueuedListMail[]): MailContent | null => {
  const numbers = [...new Set(rows.map(({ job }) => job))];
  const ended = numbers.flatMap((number) => jobs.get(number) ?? []).filter(({ status }) => Object.hasOwn(ENDS, status));
  const [first] = ended;
  if (first === undefined) return null;
  return {
    subject: ended.length === 1 ? headingOf(first) : `${formatCount(ended.length)} lists have ended`,
    sections: ended.map((job) => sectionOf(jobs, job)),
    closing: ["You receive this mail because it was asked for when the list was started."],
  };
};

const ENDS: Readonly<Record<string, string>> = { completed: "is done", cancelled: "was cancelled", failed: "failed" };

const headingOf = ({ name, status }: JobRow): string => `${shortName(listTitle(name))} ${ENDS[status] ?? "has ended"}`;

const sectionOf = (jobs: JobStore, job: JobRow): MailSection => {
  const counts = countGroups(jobs.counts(job.number));
  const items = ROW_GROUPS.filter((group) => counts[group] > 0).map((group) => ({
    text: `${GROUP_LABELS[group]}: ${formatCount(counts[group])}`,
  }));
  return {
    heading: headingOf(job),
    blocks: [
      line(
        job.status === "failed"
          ? "An error of this service prevents its completion. Its finished results can be downloaded; the other credits were released."
          : null,
        "bad",
      ),
      line(
        `${formatCount(job.addressesFinished)} of ${plural(job.addressesTotal, "address").replace(/addresss$/, "addresses")} finished, in ${plural(job.rowsTotal, "row")}.`,
      ),
      list("Rows", items, { max: ROW_GROUPS.length }),
      pageLink("See the results", `/lists/${job.id}`, `Lists › ${listTitle(job.name)}`),
    ],
  };
};
